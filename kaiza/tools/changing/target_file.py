"""What stands where a change is wanted; what no change may touch is refused here, in a dry run too."""

import base64
import binascii
from dataclasses import dataclass

from kaiza.domain import errors
from kaiza.domain.paths.file_entry import FileEntry
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.text.lines import FileDigest
from kaiza.tools.handles import ReadableFile
from kaiza.tools.reading import file_reader
from kaiza.tools.view import FilesView

_MISSING_CODES = frozenset({"FILE_NOT_FOUND", "PATH_NOT_FOUND"})
_WRITE_BITS = 0o222


@dataclass(frozen=True, slots=True)
class TargetFile:
    """A plain file as it is now; its content only where it was asked for and is not above the bound."""

    path: RelPath
    hash: str
    size: int
    total_lines: int
    mode: int
    content: bytes | None
    stamp: tuple[int, ...] = ()


def read_target(path: RelPath, view: FilesView, *, keep: int = 0) -> TargetFile | None:
    """Look at the file; None where nothing is and a file could be made. Up to `keep` bytes of content come along."""
    if stat_target(path, view) is None:
        return None
    with view.open_file(path) as file:
        return _scan_target(path, file, view, keep)


def stat_target(path: RelPath, view: FilesView) -> int | None:
    """How large the file is, unread; None where nothing is and a file could be made."""
    entry = _stat_or_none(path, view)
    if entry is None:
        _require_creatable(path, view)
        return None
    _require_regular_file(path, entry)
    return entry.size or 0


def target_size(path: RelPath, view: FilesView) -> int:
    """How large the file is, unread and not judged; 0 where nothing is."""
    entry = _stat_or_none(path, view)
    return 0 if entry is None else entry.size or 0


def read_existing(path: RelPath, view: FilesView, *, keep: int = 0) -> TargetFile:
    """Look at a file that must be there."""
    return require_present(path, read_target(path, view, keep=keep))


def require_present(path: RelPath, found: TargetFile | None) -> TargetFile:
    """Insist that something is there."""
    if found is None:
        raise errors.SystemError.tool_failure(
            "FILE_NOT_FOUND",
            human_message="There is no such file. List the directory to see what there is.",
            cause={"path": str(path)},
        )
    return found


def require_hash(found: TargetFile, expected_hash: str) -> None:
    """Insist that the file is the one the caller has read."""
    if found.hash != expected_hash:
        raise errors.SystemError.tool_failure(
            "HASH_MISMATCH",
            human_message="The file is not what was expected. Read it again and decide anew.",
            cause={"path": str(found.path), "expected_hash": expected_hash, "current_hash": found.hash},
        )


def require_absent(found: TargetFile | None) -> None:
    """Insist that nothing is there."""
    if found is not None:
        raise errors.SystemError.tool_failure(
            "FILE_ALREADY_EXISTS",
            human_message="There is a file already. Read it and name its hash, or choose another path.",
            cause={"path": str(found.path), "current_hash": found.hash},
        )


def require_content(found: TargetFile, view: FilesView) -> bytes:
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


def require_writable(found: TargetFile) -> None:
    """Insist that the file may be written."""
    if not found.mode & _WRITE_BITS:
        raise _write_error(found.path, "The file is read-only. Ask a person to make it writable.", "read_only")


def _stat_or_none(path: RelPath, view: FilesView) -> FileEntry | None:
    try:
        return view.stat(path)
    except errors.SystemError as error:
        if error.error_code not in _MISSING_CODES:
            raise
        return None


def _require_regular_file(path: RelPath, entry: FileEntry) -> None:
    if entry.real != path:
        raise _link_error(path, entry.real)
    if entry.type != "file":
        raise _write_error(path, "This is not a regular file. Choose a regular file.", entry.type)


def _scan_target(path: RelPath, file: ReadableFile, view: FilesView, keep: int) -> TargetFile:
    if file.nlink > 1:
        raise _write_error(path, "The file has several names (hard links). Ask a person to change it.", "hard_link")
    kept = bytearray()

    def take(chunk: bytes) -> None:
        if len(kept) + len(chunk) <= keep:
            kept.extend(chunk)

    whole = FileDigest()
    file_reader.scan_file(file, view, whole, take)
    content = bytes(kept) if len(kept) == whole.size else None
    return TargetFile(path, whole.hex_digest, whole.size, whole.total_lines, file.mode, content, file.stamp)


def _require_creatable(path: RelPath, view: FilesView) -> None:
    """Insist that a file can be made: above it nothing but directories, no link among them, none in its place."""
    above = path.parent
    while (entry := _stat_or_none(above, view)) is None:
        above = above.parent
    rest = path.parts[len(above.parts) :]
    if entry.real != above:
        raise _link_error(path, RelPath((*entry.real.parts, *rest)))
    if entry.type != "directory":
        raise _write_error(path, "A file stands where the path needs a directory. Choose another path.", entry.type)
    with view.open_directory(above) as directory:
        found = directory.stat_entry(rest[0])
    if found is not None and found.type == "link":
        raise _link_error(path, None)


def _link_error(path: RelPath, real: RelPath | None) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "INVALID_PATH",
        human_message="The path goes through a link, and changes do not follow links. Name the file by its real path.",
        cause={"path": str(path), "real_path": None if real is None else str(real)},
    )


def _write_error(path: RelPath, sentence: str, why: str) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "FILE_WRITE_FAILED", human_message=sentence, cause={"path": str(path), "why": why}
    )


def decode(argument: str, text: str, encoding: str | None = None) -> bytes:
    """Give the bytes that an argument means; INVALID_INPUT_FORMAT where it means none."""
    try:
        return base64.b64decode(text, validate=True) if encoding == "base64" else text.encode()
    except (binascii.Error, UnicodeEncodeError, ValueError):
        wanted = "base64 with padding" if encoding == "base64" else "text without half characters"
        raise errors.SystemError.tool_failure(
            "INVALID_INPUT_FORMAT",
            human_message=f"{argument} is malformed. Send {wanted}.",
            cause={"faults": [{"argument": argument, "code": "INVALID_INPUT_FORMAT"}], "count": 1},
        ) from None
