"""Comparison of files with the hashes in an intent, where no journal says how far its change came."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from kaiza.domain import errors
from kaiza.domain.paths.protected_names import is_control_plane
from kaiza.domain.paths.rel_path import RelPath, parse
from kaiza.store.disk.byte_io import hash_content
from kaiza.store.files.confined_root import ConfinedRoot

MAX_HASHED_BYTES = 1 << 30
_UNKNOWN_HASH = ""
FileState = Literal["before", "after", "both", "other"]
"""`both` where the change leaves the content as it was."""


def comparable_paths(
    changes: Sequence[Mapping[str, Any]], is_unreadable: Callable[[RelPath], bool]
) -> list[RelPath] | None:
    """Every path that the changes touch; None where one is protected or no path."""
    try:
        touched = [parse(path) for change in changes for path in (change["path"], change["source"]) if path]
    except errors.SystemError:
        return None
    # The log may have come with a clone: its intent must not reveal whether a guessed hash is that of a secret.
    return None if any(is_control_plane(path) or is_unreadable(path) for path in touched) else touched


def compare_files(files: ConfinedRoot, changes: Sequence[Mapping[str, Any]]) -> Iterator[FileState]:
    """Yield how the file of each change is now. Its paths must be comparable."""
    for change in changes:
        current = _hash_file(files, change["path"])
        is_before = current == (change["before_hash"] if change["source"] is None else None)
        is_after = current == change["after_hash"]
        yield "both" if is_before and is_after else "after" if is_after else "before" if is_before else "other"


def _hash_file(files: ConfinedRoot, path: str) -> str | None:
    """SHA-256 of a file; None where there is none, `_UNKNOWN_HASH` where it cannot be read or is too large."""
    try:
        with files.open_file(parse(path), lambda _real: None) as file:
            if file.size > MAX_HASHED_BYTES:
                return _UNKNOWN_HASH
            return hash_content(file.chunks())
    except errors.SystemError as error:
        return None if error.error_code == "FILE_NOT_FOUND" else _UNKNOWN_HASH
