"""Open files, directories and walks as tools see them; the store has them."""

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

from kaiza.domain.paths.file_entry import FileEntry
from kaiza.domain.paths.rel_path import RelPath


class Closing(Protocol):
    """Something that is closed by its `with`."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class ReadableFile(Closing, Protocol):
    """A regular file, open for reading; closed by its `with`."""

    real: RelPath
    size: int
    mtime_ns: int
    mode: int
    nlink: int
    stamp: tuple[int, ...]

    def read(self, size: int) -> bytes:
        """The next bytes; empty at the end."""
        ...

    def pread(self, size: int, offset: int) -> bytes:
        """The bytes at an offset."""
        ...


class ListableDirectory(Closing, Protocol):
    """A directory, open for listing; closed by its `with`."""

    real: RelPath

    def names(self, after: str = "", most: int = ...) -> Sequence[str]:
        """What stands in it, sorted, after a name and at most so many."""
        ...

    def stat_entry(self, name: str) -> FileEntry | None:
        """What stands at a name in it, a link as a link; None if it is gone by now."""
        ...


class FileContent(Closing, Protocol):
    """The content of a file met on a walk; closed by its `with`."""

    size: int

    def read(self, size: int) -> bytes:
        """The next bytes; empty at the end."""
        ...


class WalkEntry(Protocol):
    """One thing met on a walk; good for a look until the walk goes on."""

    @property
    def path(self) -> str:
        """Where it is, joined by slashes."""
        ...

    @property
    def type(self) -> str:
        """One of file, directory, link, other."""
        ...

    @property
    def real(self) -> RelPath:
        """The path as a value."""
        ...

    def stat_entry(self) -> FileEntry | None:
        """Its size and time; None if it is gone."""
        ...

    def open(self) -> FileContent | None:
        """Its content, if it is a plain file that lets itself be read."""
        ...


class Walk(Closing, Protocol):
    """A walk in the order of paths; closed by its `with`."""

    listed_count: int
    visited_count: int
    unlisted_count: int
    stopped_early: bool

    def __iter__(self) -> Iterator[WalkEntry]: ...
