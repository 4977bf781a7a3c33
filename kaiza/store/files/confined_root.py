"""Confined access to one directory tree: nothing outside of it is opened, and only regular files are read.

Paths are resolved relative to a descriptor of the root, by `openat2` or by the portable `nofollow_walk`.
"""

import errno
import heapq
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeVar

from kaiza.domain.paths.rel_path import ROOT, FileEntry, FileKind, RelPath
from kaiza.domain.paths.repository_names import BARE_REPOSITORY, is_in_repository, possible_bare_repositories
from kaiza.store.disk.byte_io import file_stamp
from kaiza.store.files import openat2
from kaiza.store.files.nofollow_walk import NoFollowResolver
from kaiza.store.files.os_errors import not_regular_file_error, to_system_error
from kaiza.store.files.resolved import OwnedDescriptor, ResolvedPath

CHUNK_BYTES = 1 << 20
# A file that grew by this much since it was opened is still read in one call.
_SPARE_BYTES = 4096
MAX_ATTEMPTS = 128
MAX_KERNEL_ATTEMPTS = 64

PathCheck = Callable[[RelPath], None]
_T = TypeVar("_T")


@dataclass(slots=True)
class OpenDirectory(OwnedDescriptor):
    """A directory opened for listing."""

    real: RelPath

    def names(self, after: str = "", most: int = sys.maxsize) -> Sequence[str]:
        """At most `most` names in sorted order, those after a given name; no entry is read."""
        try:
            names = [name for name in os.listdir(self.fd) if name > after]  # noqa: PTH208  by descriptor
        except OSError as error:
            raise to_system_error(error, self.real, missing="PATH_NOT_FOUND") from error
        # A page of a large directory: to find the next thousand names takes a fraction of sorting all of them.
        return sorted(names) if most >= len(names) else heapq.nsmallest(most, names)

    def stat_entry(self, name: str) -> FileEntry | None:
        """Type, size and time of one entry, of a link itself; None where it is gone."""
        try:
            return entry_of(self.real / name, os.stat(name, dir_fd=self.fd, follow_symlinks=False))
        except OSError:
            return None


@dataclass(slots=True)
class OpenFile(OwnedDescriptor):
    """A regular file opened for reading; size, time and mode are those at the time of opening."""

    real: RelPath
    size: int
    mtime_ns: int
    mode: int
    nlink: int
    stamp: tuple[int, ...]
    status: os.stat_result

    def read(self, size: int) -> bytes:
        """Read the next bytes, at most `size`; empty at the end."""
        # Never a buffer far larger than the file: to map and unmap 256 KiB costs more than to read a small file.
        try:
            return os.read(self.fd, min(size, self.size + _SPARE_BYTES))
        except OSError as error:
            raise to_system_error(error, self.real, missing="FILE_NOT_FOUND") from error

    def pread(self, size: int, offset: int) -> bytes:
        """Read at an offset, at most `size` bytes."""
        try:
            return os.pread(self.fd, min(size, self.size + _SPARE_BYTES), offset)
        except OSError as error:
            raise to_system_error(error, self.real, missing="FILE_NOT_FOUND") from error

    def chunks(self, size: int = CHUNK_BYTES) -> Iterator[bytes]:
        """Yield the rest of the file in chunks."""
        while chunk := self.read(size):
            yield chunk


class ConfinedRoot(OwnedDescriptor):
    """A directory tree below one root. The root is opened once: replacing the directory at its path changes nothing."""

    def __init__(self, root: str, *, resolver: str | None = None) -> None:
        try:
            super().__init__(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        except OSError as error:
            raise to_system_error(error, ROOT, missing="PATH_NOT_FOUND") from error
        self.root = root
        is_portable = resolver == "walk" or (resolver is None and not openat2.is_supported(self.fd))
        self._resolver: openat2.KernelResolver | NoFollowResolver = (
            NoFollowResolver(self.fd) if is_portable else openat2.KernelResolver(self.fd)
        )

    @property
    def resolver_name(self) -> str:
        """How paths are resolved: openat2, or walk where the kernel does not offer it."""
        return self._resolver.name

    def open_file(self, path: RelPath, judge: PathCheck) -> OpenFile:
        """Open a regular file for reading, after `judge` accepted its real path."""
        return self._with_checked(path, judge, _open_regular_file, missing="FILE_NOT_FOUND")

    def open_directory(self, path: RelPath, judge: PathCheck) -> OpenDirectory:
        """Open a directory for listing, after `judge` accepted its real path."""
        return self._with_checked(path, judge, _open_for_listing, missing="PATH_NOT_FOUND")

    def stat(self, path: RelPath, judge: PathCheck) -> FileEntry:
        """Type, size and time of what a path leads to, after `judge` accepted its real path."""
        return self._with_checked(path, judge, lambda place: entry_of(place.real, place.stat), missing="FILE_NOT_FOUND")

    def with_resolved(self, path: RelPath, use: Callable[[ResolvedPath], _T], *, follow: bool = True) -> _T:
        """Resolve a path and call `use` with it, again where it was replaced in between.

        OSError where the path does not exist or leads outside. `use` must not keep the descriptor.
        """
        attempts, resolver = 0, self._resolver
        while True:
            try:
                with resolver.resolve(path, follow=follow) as place:
                    return use(place)
            except BlockingIOError:
                attempts += 1
                if attempts == MAX_ATTEMPTS:
                    raise
                # openat2 gives up on `..` with EAGAIN while anything on the machine is renamed; the walk does not.
                if attempts == MAX_KERNEL_ATTEMPTS:
                    resolver = NoFollowResolver(self.fd)

    def real_path(self, path: RelPath) -> RelPath:
        """The path with links resolved; its last names need not exist yet."""
        for depth in range(len(path.parts), -1, -1):
            try:
                real = self.with_resolved(RelPath(path.parts[:depth]), lambda place: place.real)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise to_system_error(error, path, missing="FILE_NOT_FOUND") from error
            return RelPath(real.parts + path.parts[depth:])
        raise to_system_error(OSError(errno.ENOENT, "gone"), path, missing="FILE_NOT_FOUND")

    def _with_checked(self, path: RelPath, judge: PathCheck, use: Callable[[ResolvedPath], _T], *, missing: str) -> _T:
        # Judged on what was resolved, not on the path as spelled: a link cannot change between the check and the use.
        def use_if_allowed(place: ResolvedPath) -> _T:
            judge(place.real)
            return use(place)

        try:
            return self.with_resolved(path, use_if_allowed)
        except OSError as error:
            raise to_system_error(error, path, missing=missing) from error


def entry_of(real: RelPath, status: os.stat_result) -> FileEntry:
    """The entry that a stat result describes."""
    kind = file_kind(status.st_mode)
    size = status.st_size if kind == "file" else None
    return FileEntry(real.name, kind, size, format_mtime(status.st_mtime_ns), stat.S_IMODE(status.st_mode), real)


def file_kind(mode: int) -> FileKind:
    """The kind of file that a mode is of."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def format_mtime(mtime_ns: int) -> str:
    """A file time as ISO 8601 in UTC with milliseconds."""
    return f"{_format_second(mtime_ns // 1_000_000_000)}.{mtime_ns // 1_000_000 % 1000:03d}Z"


@lru_cache(maxsize=1024)
def _format_second(since_epoch: int) -> str:
    try:
        whole = datetime.fromtimestamp(since_epoch, UTC)
    except (OverflowError, ValueError, OSError):  # a file system can hold times that the calendar cannot
        whole = datetime.max.replace(tzinfo=UTC) if since_epoch > 0 else datetime.min.replace(tzinfo=UTC)
    return whole.isoformat(timespec="seconds")[:19]


def _open_for_listing(place: ResolvedPath) -> OpenDirectory:
    if not stat.S_ISDIR(place.stat.st_mode):
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return OpenDirectory(place.open(os.O_RDONLY | os.O_DIRECTORY), place.real)


def _open_regular_file(place: ResolvedPath) -> OpenFile:
    status = place.stat
    # Checked before it is opened: to open a device may have an effect, and to open a FIFO wakes its writer.
    if not stat.S_ISREG(status.st_mode):
        raise not_regular_file_error(place.real, file_kind(status.st_mode))
    fd = place.open(os.O_RDONLY)
    mode, stamp = stat.S_IMODE(status.st_mode), file_stamp(status)
    return OpenFile(fd, place.real, status.st_size, status.st_mtime_ns, mode, status.st_nlink, stamp, status)


def is_in_any_repository(files: ConfinedRoot, path: RelPath) -> bool:
    """Whether the path is a part of a repository that may not be read, also of a bare one under any name."""
    if is_in_repository(path):
        return True
    for directory in possible_bare_repositories(path):
        with suppress(OSError):  # one of the names that make a repository is missing
            if all(files.with_resolved(directory / name, lambda _: True, follow=False) for name in BARE_REPOSITORY):
                return True
    return False
