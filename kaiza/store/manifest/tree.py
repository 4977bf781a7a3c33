"""Walk of the whole tree by stat: every entry except version control and Kaiza's own files.

Nothing is opened but directories, and no link is followed.
"""

import os
import stat
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from kaiza.domain import errors
from kaiza.domain.manifest.report import EntryKind
from kaiza.domain.paths.protected_names import LOG_DIRECTORY, LOG_NAME
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.disk.byte_io import keeps_times
from kaiza.store.files.confined_root import ConfinedRoot, OpenDirectory

CHUNK_ENTRIES = 1_000
_LISTED_AT_ONCE = 5_000
SKIPPED_NAMES = frozenset({b".git", b".kaiza"})
AUDIT = LOG_DIRECTORY.encode()
_LOG_NAME = LOG_NAME.encode()
_MAX_PATH = 4_000
# SQLite has signed integers; a file system may use all 64 bits.
_MAX_INODE = (1 << 63) - 1
_FORMAT = 0o170000
_CONTENT_FORMATS = frozenset({stat.S_IFREG, stat.S_IFLNK})
_KINDS: dict[int, EntryKind] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
}


class Stat(NamedTuple):
    """Status of one entry; while it is the same, so is the content."""

    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def from_result(cls, status: os.stat_result) -> "Stat":
        """The fields of a stat result, as SQLite can hold them."""
        mode, inode = status.st_mode, status.st_ino & _MAX_INODE
        if mode & _FORMAT in _CONTENT_FORMATS:
            return cls(mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, inode)
        # A directory's times change with each entry, a FIFO's with each write: neither is a change of the entry.
        return cls(mode, 0, 0, status.st_ctime_ns, inode)

    @property
    def kind(self) -> EntryKind:
        """Kind of the entry."""
        return _KINDS.get(stat.S_IFMT(self.mode), "device")

    def is_same(self, other: "Stat") -> bool:
        """Whether the entry is unchanged since the other status."""
        if self.mode & _FORMAT in _CONTENT_FORMATS:
            return self == other
        return self.mode == other.mode and self.inode == other.inode


@dataclass(frozen=True, slots=True)
class Chunk:
    """Entries of one directory whose names follow `after`, up to `through`; None is the end of the directory."""

    directory: bytes
    ctime_ns: int
    """When the directory was changed last, read after it was listed: no entry that is missing was removed later."""
    seen_ns: int
    entries: dict[bytes, Stat]
    after: bytes = b""
    through: bytes | None = None
    is_listed: bool = True
    """Whether the directory could be read."""
    has_times: bool = True
    """Whether the times of an entry tell of each change of its content."""


END = Chunk(b"", 0, 0, {}, is_listed=False)
"""What follows the last chunk."""


def walk_tree(root: ConfinedRoot) -> Iterator[Chunk | None]:
    """Every directory in chunks, the root first; None while a long one is listed, so that the caller may stop.

    The names of one directory are held in memory, and of the others only those of directories still to visit.
    """
    pending = [b""]
    while pending:
        directories: list[bytes] = []
        for chunk in _list_directory(root, pending.pop()):
            yield chunk
            if chunk is None:
                continue
            directories += [
                join(chunk.directory, name)
                for name, entry in chunk.entries.items()
                if entry[0] & _FORMAT == stat.S_IFDIR  # by index: this line is run for each entry of the tree
            ]
        pending += reversed(directories)


def join(directory: bytes, name: bytes) -> bytes:
    """Path of a name in a directory; the root is empty."""
    return directory + b"/" + name if directory else name


def is_skipped(directory: bytes, name: bytes) -> bool:
    """Whether the entry is version control or Kaiza's own: its log, journals and blobs."""
    return name in SKIPPED_NAMES or (directory == AUDIT and name == _LOG_NAME)


def _list_directory(root: ConfinedRoot, path: bytes) -> Iterator[Chunk | None]:
    unlisted = Chunk(path, 0, time.time_ns(), {}, is_listed=False)
    try:
        directory = _open_directory(root, path)
        if directory is None:
            return
        with directory:
            names = yield from _list_names(directory.fd)
            # After the listing: the time then tells of every entry that is missing in it.
            changed_ns = os.fstat(directory.fd).st_ctime_ns
            has_times = keeps_times(directory.fd)
            after = b""
            for start in range(0, max(1, len(names)), CHUNK_ENTRIES):
                chosen = names[start : start + CHUNK_ENTRIES]
                through = chosen[-1] if start + CHUNK_ENTRIES < len(names) else None
                entries = _stat_entries(directory.fd, path, chosen)
                yield Chunk(path, changed_ns, time.time_ns(), entries, after, through, has_times=has_times)
                after = through or b""
    except OSError:
        yield unlisted


def _open_directory(root: ConfinedRoot, path: bytes) -> OpenDirectory | None:
    """Open a directory; None if it was removed since its parent was listed, OSError if it cannot be read."""
    real = RelPath.from_bytes(path)
    if len(path) > _MAX_PATH:
        raise OSError
    try:
        directory = root.open_directory(real, lambda _real: None)
    except errors.SystemError as error:
        if error.error_code == "PATH_NOT_FOUND":
            return None
        raise OSError from error
    # A parent was swapped for a link: its entries would be reported under paths that are not theirs.
    if directory.real != real:
        directory.close()
        raise OSError
    return directory


def _list_names(descriptor: int) -> Generator[None, None, list[bytes]]:
    """The sorted names in a directory; yields while it is a long one."""
    names: list[bytes] = []
    with os.scandir(descriptor) as listed:
        while part := [os.fsencode(entry.name) for entry in islice(listed, _LISTED_AT_ONCE)]:
            names += part
            if len(part) == _LISTED_AT_ONCE:
                yield None
    names.sort()
    return names


def _stat_entries(directory_fd: int, path: bytes, names: list[bytes]) -> dict[bytes, Stat]:
    entries = {}
    for name in names:
        try:
            entries[name] = Stat.from_result(os.stat(name, dir_fd=directory_fd, follow_symlinks=False))
        except OSError:  # deleted since it was listed
            continue
    for name in [name for name in entries if name in SKIPPED_NAMES or path == AUDIT]:
        if is_skipped(path, name):
            del entries[name]
    return entries
