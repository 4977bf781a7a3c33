"""The workspace by descriptor: nothing outside of it is ever opened, and only plain files are read."""

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol, TypeVar

from kaiza.domain.paths.file_entry import FileEntry, FileKind
from kaiza.domain.paths.rel_path import ROOT, RelPath
from kaiza.store.disk.byte_io import file_stamp
from kaiza.store.files import openat2
from kaiza.store.files.directory_cache import DirectoryCache
from kaiza.store.files.nofollow_walk import NoFollowResolver
from kaiza.store.files.os_errors import not_regular_file_error, to_system_error
from kaiza.store.files.resolved import OwnedDescriptor, ResolvedPath

CHUNK_BYTES = 1 << 20
_SPARE_BYTES = 4096
"""So much may a file have grown since it was opened, and still come in one piece."""
MAX_ATTEMPTS = 128
MAX_KERNEL_ATTEMPTS = 64

PathCheck = Callable[[RelPath], None]
_T = TypeVar("_T")


class Resolver(Protocol):
    """Finds what a path leads to; OSError where it leads nowhere or out."""

    @property
    def name(self) -> str:
        """How it resolves: openat2 or walk."""
        ...

    def resolve(self, path: RelPath, *, follow: bool = True) -> ResolvedPath:
        """Find the place, following links that stay inside where asked to."""
        ...


@dataclass(slots=True)
class OpenDirectory(OwnedDescriptor):
    """A directory held open for listing."""

    real: RelPath
    _cache: DirectoryCache = field(repr=False)

    def names(self, after: str = "", most: int = sys.maxsize) -> Sequence[str]:
        """What stands in it, sorted, after a name and at most so many; nothing of it is looked at."""
        try:
            return self._cache.names_after(self.fd, after, most)
        except OSError as error:
            raise to_system_error(error, self.real, missing="PATH_NOT_FOUND") from error

    def stat_entry(self, name: str) -> FileEntry | None:
        """Describe what stands at a name in it, a link as a link; None if it is gone by now."""
        try:
            return entry_of(self.real / name, os.stat(name, dir_fd=self.fd, follow_symlinks=False))
        except OSError:
            return None


@dataclass(slots=True)
class OpenFile(OwnedDescriptor):
    """A plain file held open for reading; its facts are those of the moment it was opened."""

    real: RelPath
    size: int
    mtime_ns: int
    mode: int
    nlink: int
    stamp: tuple[int, ...]

    def read(self, size: int) -> bytes:
        """Read on, at most so many bytes; empty at the end. A buffer far larger than the file costs more than it."""
        try:
            return os.read(self.fd, min(size, self.size + _SPARE_BYTES))
        except OSError as error:
            raise to_system_error(error, self.real, missing="FILE_NOT_FOUND") from error

    def pread(self, size: int, offset: int) -> bytes:
        """Read at an offset, at most so many bytes."""
        try:
            return os.pread(self.fd, min(size, self.size + _SPARE_BYTES), offset)
        except OSError as error:
            raise to_system_error(error, self.real, missing="FILE_NOT_FOUND") from error

    def chunks(self, size: int = CHUNK_BYTES) -> Iterator[bytes]:
        """Read on to the end, a chunk at a time."""
        while chunk := self.read(size):
            yield chunk


class ConfinedRoot(OwnedDescriptor):
    """One root, opened once; whatever the root's name leads to later, this is the directory that is meant."""

    def __init__(self, root: str, *, resolver: str | None = None) -> None:
        try:
            super().__init__(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        except OSError as error:
            raise to_system_error(error, ROOT, missing="PATH_NOT_FOUND") from error
        self.root = root
        self._directory_cache = DirectoryCache()
        self._resolver = _choose_resolver(self.fd, resolver)

    @property
    def resolver_name(self) -> str:
        """How paths are resolved here: openat2, or the walk where the kernel does not offer it."""
        return self._resolver.name

    def open_file(self, path: RelPath, judge: PathCheck) -> OpenFile:
        """Open a plain file for reading; `judge` has agreed to where it really is before a byte is given out."""
        return self._with_checked(path, judge, _open_regular_file, missing="FILE_NOT_FOUND")

    def open_directory(self, path: RelPath, judge: PathCheck) -> OpenDirectory:
        """Open a directory for listing; `judge` has agreed to where it really is."""
        return self._with_checked(path, judge, self._open_for_listing, missing="PATH_NOT_FOUND")

    def stat(self, path: RelPath, judge: PathCheck) -> FileEntry:
        """Say what a path leads to; `judge` has agreed to where it really is."""
        return self._with_checked(path, judge, lambda place: entry_of(place.real, place.stat), missing="FILE_NOT_FOUND")

    def with_resolved(self, path: RelPath, use: Callable[[ResolvedPath], _T], *, follow: bool = True) -> _T:
        """Use the place that a path leads to, again where it is swapped meanwhile; OSError where it leads nowhere.

        The kernel gives up on `..` while anything anywhere is renamed; in a storm of that, our own walk does not.
        """
        tries, resolver = 0, self._resolver
        while True:
            try:
                with resolver.resolve(path, follow=follow) as place:
                    return use(place)
            except BlockingIOError:
                tries += 1
                if tries == MAX_ATTEMPTS:
                    raise
                if tries == MAX_KERNEL_ATTEMPTS:
                    resolver = NoFollowResolver(self.fd)

    def real_path(self, path: RelPath) -> RelPath:
        """Say where a path really leads, links followed, also for names that are not there yet."""
        for depth in range(len(path.parts), -1, -1):
            try:
                found = self.with_resolved(RelPath(path.parts[:depth]), lambda place: place.real)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise to_system_error(error, path, missing="FILE_NOT_FOUND") from error
            return RelPath(found.parts + path.parts[depth:])
        raise to_system_error(OSError(errno.ENOENT, "gone"), path, missing="FILE_NOT_FOUND")

    def _open_for_listing(self, place: ResolvedPath) -> OpenDirectory:
        if not stat.S_ISDIR(place.stat.st_mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return OpenDirectory(place.open(os.O_RDONLY | os.O_DIRECTORY), place.real, self._directory_cache)

    def _with_checked(self, path: RelPath, judge: PathCheck, use: Callable[[ResolvedPath], _T], *, missing: str) -> _T:
        def judged(place: ResolvedPath) -> _T:
            judge(place.real)
            return use(place)

        try:
            return self.with_resolved(path, judged)
        except OSError as error:
            raise to_system_error(error, path, missing=missing) from error


def entry_of(real: RelPath, found: os.stat_result) -> FileEntry:
    """Describe what a stat found."""
    kind = file_kind(found.st_mode)
    size = found.st_size if kind == "file" else None
    return FileEntry(real.name, kind, size, format_mtime(found.st_mtime_ns), stat.S_IMODE(found.st_mode), real)


def file_kind(mode: int) -> FileKind:
    """Tell what a mode is the mode of."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def format_mtime(mtime_ns: int) -> str:
    """Write a time of the disk as UTC with milliseconds."""
    return f"{_format_second(mtime_ns // 1_000_000_000)}.{mtime_ns // 1_000_000 % 1000:03d}Z"


@lru_cache(maxsize=1024)
def _format_second(since_epoch: int) -> str:
    try:
        whole = datetime.fromtimestamp(since_epoch, UTC)
    except (OverflowError, ValueError, OSError):
        whole = datetime.max.replace(tzinfo=UTC) if since_epoch > 0 else datetime.min.replace(tzinfo=UTC)
    return whole.isoformat(timespec="seconds")[:19]


def _choose_resolver(root_fd: int, wanted: str | None) -> Resolver:
    if wanted == "walk" or (wanted is None and not openat2.is_supported(root_fd)):
        return NoFollowResolver(root_fd)
    return openat2.KernelResolver(root_fd)


def _open_regular_file(place: ResolvedPath) -> OpenFile:
    found = place.stat
    if not stat.S_ISREG(found.st_mode):
        raise not_regular_file_error(place.real, file_kind(found.st_mode))
    fd = place.open(os.O_RDONLY)
    mode, stamp = stat.S_IMODE(found.st_mode), file_stamp(found)
    return OpenFile(fd, place.real, found.st_size, found.st_mtime_ns, mode, found.st_nlink, stamp)
