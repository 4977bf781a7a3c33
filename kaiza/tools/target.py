"""What stands where a change is wanted; what no change may touch is refused here, in a dry run too."""

from dataclasses import dataclass

from kaiza.domain import errors
from kaiza.domain.file_entry import FileEntry
from kaiza.domain.lines import Sum
from kaiza.domain.paths import RelPath
from kaiza.tools import passage
from kaiza.tools.handles import OpenFile
from kaiza.tools.view import FilesView

_MISSING = frozenset({"FILE_NOT_FOUND", "PATH_NOT_FOUND"})
_MAY_WRITE = 0o222


@dataclass(frozen=True, slots=True)
class Standing:
    """A plain file as it is now; its content only where it was asked for and is not above the bound."""

    path: RelPath
    hash: str
    size: int
    total_lines: int
    mode: int
    content: bytes | None
    stamp: tuple[int, ...] = ()


def standing(path: RelPath, view: FilesView, *, keep: int = 0) -> Standing | None:
    """Look at the file; None where nothing is and a file could be made. Up to `keep` bytes of content come along."""
    if glance(path, view) is None:
        return None
    with view.open_file(path) as file:
        return _seen(path, file, view, keep)


def glance(path: RelPath, view: FilesView) -> int | None:
    """How large the file is, unread; None where nothing is and a file could be made."""
    entry = _entry(path, view)
    if entry is None:
        _room_for(path, view)
        return None
    _plain(path, entry)
    return entry.size or 0


def size(path: RelPath, view: FilesView) -> int:
    """How large the file is, unread and not judged; 0 where nothing is."""
    entry = _entry(path, view)
    return 0 if entry is None else entry.size or 0


def existing(path: RelPath, view: FilesView, *, keep: int = 0) -> Standing:
    """Look at a file that must be there."""
    return there(path, standing(path, view, keep=keep))


def there(path: RelPath, found: Standing | None) -> Standing:
    """Insist that something is there."""
    if found is None:
        raise errors.SystemError.tool_failure(
            "FILE_NOT_FOUND",
            human_message="There is no such file. List the directory to see what there is.",
            cause={"path": str(path)},
        )
    return found


def expected(found: Standing, expected_hash: str) -> None:
    """Insist that the file is the one the caller has read."""
    if found.hash != expected_hash:
        raise errors.SystemError.tool_failure(
            "HASH_MISMATCH",
            human_message="The file is not what was expected. Read it again and decide anew.",
            cause={"path": str(found.path), "expected_hash": expected_hash, "current_hash": found.hash},
        )


def vacant(found: Standing | None) -> None:
    """Insist that nothing is there."""
    if found is not None:
        raise errors.SystemError.tool_failure(
            "FILE_ALREADY_EXISTS",
            human_message="There is a file already. Read it and name its hash, or choose another path.",
            cause={"path": str(found.path), "current_hash": found.hash},
        )


def held(found: Standing, view: FilesView) -> bytes:
    """The content that was asked for; CAP_EXCEEDED where there is too much of it."""
    if found.content is None:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="The file is too large to be edited here. Ask a person to change it.",
            cause={
                "path": str(found.path),
                "cap": "file_bytes",
                "limit": view.caps.hashed_bytes,
                "found": found.size,
            },
        )
    return found.content


def rewritable(found: Standing) -> None:
    """Insist that the file may be written."""
    if not found.mode & _MAY_WRITE:
        raise _refused(found.path, "The file is read-only. Ask a person to make it writable.", "read_only")


def _entry(path: RelPath, view: FilesView) -> FileEntry | None:
    try:
        return view.stat(path)
    except errors.SystemError as error:
        if error.error_code not in _MISSING:
            raise
        return None


def _plain(path: RelPath, entry: FileEntry) -> None:
    if entry.real != path:
        raise _through_a_link(path, entry.real)
    if entry.type != "file":
        raise _refused(path, "This is not a regular file. Choose a regular file.", entry.type)


def _seen(path: RelPath, file: OpenFile, view: FilesView, keep: int) -> Standing:
    if file.nlink > 1:
        raise _refused(path, "The file has several names (hard links). Ask a person to change it.", "hard_link")
    kept = bytearray()

    def take(chunk: bytes) -> None:
        if len(kept) + len(chunk) <= keep:
            kept.extend(chunk)

    whole = Sum()
    passage.reckon(file, view, whole, take)
    content = bytes(kept) if len(kept) == whole.size else None
    return Standing(path, whole.hash, whole.size, whole.total_lines, file.mode, content, file.stamp)


def _room_for(path: RelPath, view: FilesView) -> None:
    """Insist that a file can be made: above it nothing but directories, no link among them, none in its place."""
    above = path.parent
    while (entry := _entry(above, view)) is None:
        above = above.parent
    rest = path.parts[len(above.parts) :]
    if entry.real != above:
        raise _through_a_link(path, RelPath((*entry.real.parts, *rest)))
    if entry.type != "directory":
        raise _refused(path, "A file stands where the path needs a directory. Choose another path.", entry.type)
    with view.open_directory(above) as directory:
        found = directory.entry(rest[0])
    if found is not None and found.type == "link":
        raise _through_a_link(path, None)


def _through_a_link(path: RelPath, real: RelPath | None) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "INVALID_PATH",
        human_message="The path goes through a link, and changes do not follow links. Name the file by its real path.",
        cause={"path": str(path), "real_path": None if real is None else str(real)},
    )


def _refused(path: RelPath, sentence: str, why: str) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "FILE_WRITE_FAILED", human_message=sentence, cause={"path": str(path), "why": why}
    )
