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

from kaiza.domain.file_entry import FileEntry, Kind
from kaiza.domain.paths import ROOT, RelPath
from kaiza.store import openat2
from kaiza.store.byte_io import stamp_of
from kaiza.store.listing import Listings
from kaiza.store.place import Held, Place
from kaiza.store.refusal import not_a_file, refusal
from kaiza.store.walk import WalkResolver

CHUNK = 1 << 20
_SPARE = 4096
"""So much may a file have grown since it was opened, and still come in one piece."""
MOST_TRIES = 128
KERNEL_TRIES = 64

Judge = Callable[[RelPath], None]
_T = TypeVar("_T")


class Resolver(Protocol):
    """Finds what a path leads to; OSError where it leads nowhere or out."""

    @property
    def name(self) -> str:
        """How it resolves: openat2 or walk."""
        ...

    def locate(self, path: RelPath, *, follow: bool = True) -> Place:
        """Find the place, following links that stay inside where asked to."""
        ...


@dataclass(slots=True)
class OpenDirectory(Held):
    """A directory held open for listing."""

    real: RelPath
    _listings: Listings = field(repr=False)

    def names(self, after: str = "", most: int = sys.maxsize) -> Sequence[str]:
        """What stands in it, sorted, after a name and at most so many; nothing of it is looked at."""
        try:
            return self._listings.after(self.fd, after, most)
        except OSError as error:
            raise refusal(error, self.real, missing="PATH_NOT_FOUND") from error

    def entry(self, name: str) -> FileEntry | None:
        """Describe what stands at a name in it, a link as a link; None if it is gone by now."""
        try:
            return entry_of(self.real / name, os.stat(name, dir_fd=self.fd, follow_symlinks=False))
        except OSError:
            return None


@dataclass(slots=True)
class OpenFile(Held):
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
            return os.read(self.fd, min(size, self.size + _SPARE))
        except OSError as error:
            raise refusal(error, self.real, missing="FILE_NOT_FOUND") from error

    def pread(self, size: int, offset: int) -> bytes:
        """Read at an offset, at most so many bytes."""
        try:
            return os.pread(self.fd, min(size, self.size + _SPARE), offset)
        except OSError as error:
            raise refusal(error, self.real, missing="FILE_NOT_FOUND") from error

    def chunks(self, size: int = CHUNK) -> Iterator[bytes]:
        """Read on to the end, a chunk at a time."""
        while chunk := self.read(size):
            yield chunk


class Workspace(Held):
    """One root, opened once; whatever the root's name leads to later, this is the directory that is meant."""

    def __init__(self, root: str, *, resolver: str | None = None) -> None:
        try:
            super().__init__(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        except OSError as error:
            raise refusal(error, ROOT, missing="PATH_NOT_FOUND") from error
        self.root = root
        self._listings = Listings()
        self._resolver = _choose(self.fd, resolver)

    @property
    def resolver(self) -> str:
        """How paths are resolved here: openat2, or the walk where the kernel does not offer it."""
        return self._resolver.name

    def open_file(self, path: RelPath, judge: Judge) -> OpenFile:
        """Open a plain file for reading; `judge` has agreed to where it really is before a byte is given out."""
        return self._use(path, judge, _open_plain, missing="FILE_NOT_FOUND")

    def open_directory(self, path: RelPath, judge: Judge) -> OpenDirectory:
        """Open a directory for listing; `judge` has agreed to where it really is."""
        return self._use(path, judge, self._open_listing, missing="PATH_NOT_FOUND")

    def stat(self, path: RelPath, judge: Judge) -> FileEntry:
        """Say what a path leads to; `judge` has agreed to where it really is."""
        return self._use(path, judge, lambda place: entry_of(place.real, place.stat), missing="FILE_NOT_FOUND")

    def at(self, path: RelPath, use: Callable[[Place], _T], *, follow: bool = True) -> _T:
        """Use the place that a path leads to, again where it is swapped meanwhile; OSError where it leads nowhere.

        The kernel gives up on `..` while anything anywhere is renamed; in a storm of that, our own walk does not.
        """
        tries, resolver = 0, self._resolver
        while True:
            try:
                with resolver.locate(path, follow=follow) as place:
                    return use(place)
            except BlockingIOError:
                tries += 1
                if tries == MOST_TRIES:
                    raise
                if tries == KERNEL_TRIES:
                    resolver = WalkResolver(self.fd)

    def real(self, path: RelPath) -> RelPath:
        """Say where a path really leads, links followed, also for names that are not there yet."""
        for depth in range(len(path.parts), -1, -1):
            try:
                found = self.at(RelPath(path.parts[:depth]), lambda place: place.real)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise refusal(error, path, missing="FILE_NOT_FOUND") from error
            return RelPath(found.parts + path.parts[depth:])
        raise refusal(OSError(errno.ENOENT, "gone"), path, missing="FILE_NOT_FOUND")

    def _open_listing(self, place: Place) -> OpenDirectory:
        if not stat.S_ISDIR(place.stat.st_mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return OpenDirectory(place.open(os.O_RDONLY | os.O_DIRECTORY), place.real, self._listings)

    def _use(self, path: RelPath, judge: Judge, use: Callable[[Place], _T], *, missing: str) -> _T:
        def judged(place: Place) -> _T:
            judge(place.real)
            return use(place)

        try:
            return self.at(path, judged)
        except OSError as error:
            raise refusal(error, path, missing=missing) from error


def entry_of(real: RelPath, found: os.stat_result) -> FileEntry:
    """Describe what a stat found."""
    kind = kind_of(found.st_mode)
    size = found.st_size if kind == "file" else None
    return FileEntry(real.name, kind, size, moment(found.st_mtime_ns), stat.S_IMODE(found.st_mode), real)


def kind_of(mode: int) -> Kind:
    """Tell what a mode is the mode of."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def moment(mtime_ns: int) -> str:
    """Write a time of the disk as UTC with milliseconds."""
    return f"{_second(mtime_ns // 1_000_000_000)}.{mtime_ns // 1_000_000 % 1000:03d}Z"


@lru_cache(maxsize=1024)
def _second(since_epoch: int) -> str:
    try:
        whole = datetime.fromtimestamp(since_epoch, UTC)
    except (OverflowError, ValueError, OSError):
        whole = datetime.max.replace(tzinfo=UTC) if since_epoch > 0 else datetime.min.replace(tzinfo=UTC)
    return whole.isoformat(timespec="seconds")[:19]


def _choose(root_fd: int, wanted: str | None) -> Resolver:
    if wanted == "walk" or (wanted is None and not openat2.is_supported(root_fd)):
        return WalkResolver(root_fd)
    return openat2.KernelResolver(root_fd)


def _open_plain(place: Place) -> OpenFile:
    found = place.stat
    if not stat.S_ISREG(found.st_mode):
        raise not_a_file(place.real, kind_of(found.st_mode))
    fd = place.open(os.O_RDONLY)
    mode, stamp = stat.S_IMODE(found.st_mode), stamp_of(found)
    return OpenFile(fd, place.real, found.st_size, found.st_mtime_ns, mode, found.st_nlink, stamp)
