"""Reads the file that a change is about, and refuses files that no tool may change: links, devices, hard links."""

import base64
import binascii
from dataclasses import dataclass

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import FileEntry, RelPath
from kaiza.domain.text.lines import FileDigest
from kaiza.tools.reading import file_reader
from kaiza.tools.view import WorkspaceView

_MISSING_CODES = frozenset({"FILE_NOT_FOUND", "PATH_NOT_FOUND"})
_WRITE_BITS = 0o222


@dataclass(frozen=True, slots=True)
class TargetFile:
    """A regular file as it is now, with its content only if asked for and not too large."""

    path: RelPath
    hash: str
    size: int
    total_lines: int
    mode: int
    content: bytes | None
    stamp: tuple[int, ...] = ()


def read_target(path: RelPath, view: WorkspaceView, *, keep: int = 0) -> TargetFile | None:
    """Read the file, and its content up to `keep` bytes; None if there is no file and one could be created."""
    if stat_target(path, view) is None:
        return None
    kept = bytearray()

    def keep_chunk(chunk: bytes) -> None:
        if len(kept) + len(chunk) <= keep:
            kept.extend(chunk)

    with view.open_file(path) as file:  # hash and content come from one descriptor, so they are of the same bytes
        # Its other names may lie outside the plan's scope, or outside the workspace.
        if file.nlink > 1:
            raise _write_error(path, "The file has several names (hard links). Ask a person to change it.", "hard_link")
        # Hashed to the end though at most `keep` bytes are held: a large file is moved or deleted without loading it.
        digest = FileDigest()
        file_reader.scan_file(file, view, digest, keep_chunk)
        content = bytes(kept) if len(kept) == digest.size else None
        return TargetFile(path, digest.hex_digest, digest.size, digest.total_lines, file.mode, content, file.stamp)


def stat_target(path: RelPath, view: WorkspaceView) -> int | None:
    """Size of the file, without reading it; None if there is no file and one could be created."""
    entry = _stat_or_none(path, view)
    if entry is None:
        _require_creatable(path, view)
        return None
    if entry.real != path:  # a link in the path: the plan was judged by another name
        raise _link_error(path, entry.real)
    if entry.type != "file":
        raise _write_error(path, "This is not a regular file. Choose a regular file.", entry.type)
    return entry.size or 0


def target_size(path: RelPath, view: WorkspaceView) -> int:
    """Size of the file, without reading or judging it; 0 if there is none."""
    entry = _stat_or_none(path, view)
    return 0 if entry is None else entry.size or 0


def read_existing(path: RelPath, view: WorkspaceView, *, keep: int = 0) -> TargetFile:
    """Read a file that must exist."""
    return require_present(path, read_target(path, view, keep=keep))


def require_present(path: RelPath, target: TargetFile | None) -> TargetFile:
    """Raise FILE_NOT_FOUND if there is no file."""
    if target is None:
        raise errors.SystemError.tool_failure(
            "FILE_NOT_FOUND",
            human_message="There is no such file. List the directory to see what there is.",
            cause={"path": str(path)},
        )
    return target


def require_hash(target: TargetFile, expected_hash: str) -> None:
    """Raise HASH_MISMATCH if the file is not the one that the caller has read."""
    if target.hash != expected_hash:
        raise errors.SystemError.tool_failure(
            "HASH_MISMATCH",
            human_message="The file is not what was expected. Read it again (if large, with_hash: true).",
            cause={"path": str(target.path), "expected_hash": expected_hash, "current_hash": target.hash},
        )


def require_absent(target: TargetFile | None) -> None:
    """Raise FILE_ALREADY_EXISTS if there is a file."""
    if target is not None:
        raise errors.SystemError.tool_failure(
            "FILE_ALREADY_EXISTS",
            human_message=(
                "The file exists already. Pass its hash (if large, read it with_hash: true), or choose another path."
            ),
            cause={"path": str(target.path), "current_hash": target.hash},
        )


def require_content(target: TargetFile, view: WorkspaceView) -> bytes:
    """The content of the file; CAP_EXCEEDED if it was too large to hold."""
    if target.content is None:
        limit = view.caps.hashed_bytes
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="The file is too large to edit with this tool. Ask a person to change it.",
            cause={"path": str(target.path), "cap": "file_bytes", "limit": limit, "found": target.size},
        )
    return target.content


def require_writable(target: TargetFile) -> None:
    """Raise FILE_WRITE_FAILED if the file is read-only."""
    if not target.mode & _WRITE_BITS:
        raise _write_error(target.path, "The file is read-only. Ask a person to make it writable.", "read_only")


def _stat_or_none(path: RelPath, view: WorkspaceView) -> FileEntry | None:
    try:
        return view.stat(path)
    except errors.SystemError as error:
        if error.error_code not in _MISSING_CODES:
            raise
        return None


def _require_creatable(path: RelPath, view: WorkspaceView) -> None:
    """Require that every existing parent is a real directory and that the path itself is not a dangling link."""
    parent = path.parent
    while (entry := _stat_or_none(parent, view)) is None:
        parent = parent.parent
    missing = path.parts[len(parent.parts) :]
    if entry.real != parent:
        raise _link_error(path, RelPath((*entry.real.parts, *missing)))
    if entry.type != "directory":
        raise _write_error(path, "A parent of this path is a file. Choose another path.", entry.type)
    with view.open_directory(parent) as directory:
        existing = directory.stat_entry(missing[0])
    if existing is not None and existing.type == "link":
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
    """Decode a text or base64 argument to bytes; INVALID_INPUT_FORMAT if that fails."""
    try:
        return base64.b64decode(text, validate=True) if encoding == "base64" else text.encode()
    except (binascii.Error, UnicodeEncodeError, ValueError):
        expected = "base64 with padding" if encoding == "base64" else "text without unpaired surrogates"
        raise errors.SystemError.tool_failure(
            "INVALID_INPUT_FORMAT",
            human_message=f"{argument} is malformed. Send {expected}.",
            cause={"faults": [{"argument": argument, "code": "INVALID_INPUT_FORMAT"}], "count": 1},
        ) from None
