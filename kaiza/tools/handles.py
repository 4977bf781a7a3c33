"""Protocols of open files, directories, walks, plans and the log, which the store implements."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from kaiza.domain.audit.record import Record
from kaiza.domain.context.cache_format import CacheEntry, Manifest
from kaiza.domain.paths.rel_path import FileEntry, RelPath
from kaiza.domain.plans.parser import StoredPlan


class Closeable(Protocol):
    """A context manager that closes itself."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class ReadableFile(Closeable, Protocol):
    """A regular file, open for reading."""

    real: RelPath
    size: int
    mtime_ns: int
    mode: int
    nlink: int
    stamp: tuple[int, ...]

    def read(self, size: int) -> bytes:
        """Return the next bytes; empty at the end."""
        ...

    def pread(self, size: int, offset: int) -> bytes:
        """Return the bytes at an offset."""
        ...


class ListableDirectory(Closeable, Protocol):
    """A directory, open for listing."""

    real: RelPath

    def names(self, after: str = "", most: int = ...) -> Sequence[str]:
        """Names of its entries, sorted: those after `after`, `most` of them at most."""
        ...

    def stat_entry(self, name: str) -> FileEntry | None:
        """Metadata of one entry, links not followed; None if it is gone."""
        ...


class FileContent(Closeable, Protocol):
    """The content of a file found by a walk."""

    size: int

    def read(self, size: int) -> bytes:
        """Return the next bytes; empty at the end."""
        ...


class WalkEntry(Protocol):
    """One entry of a walk. Valid only until the next one."""

    @property
    def path(self) -> str:
        """Its path, joined by slashes."""
        ...

    @property
    def type(self) -> str:
        """One of file, directory, link, other."""
        ...

    @property
    def real(self) -> RelPath:
        """Its path as a value."""
        ...

    def stat_entry(self) -> FileEntry | None:
        """Its size and time; None if it is gone."""
        ...

    def open(self) -> FileContent | None:
        """Open its content; None if it is not a readable regular file."""
        ...


class Walk(Closeable, Protocol):
    """A directory walk in the order of paths, and what it has counted so far."""

    listed_count: int
    visited_count: int
    unlisted_count: int
    ignored_directory_count: int
    stopped_early: bool

    def __iter__(self) -> Iterator[WalkEntry]: ...


class CacheHandle(Closeable, Protocol):
    """An open context cache. Everything read is verified; CONTEXT_CACHE_INVALID if it is not sound."""

    def read_manifest(self) -> Manifest:
        """The manifest, checked against the index and the names of the files."""
        ...

    def read_documents(self, manifest: Manifest, /) -> Iterator[tuple[CacheEntry, str]]:
        """Each document with its content."""
        ...

    def read_document(self, entry: CacheEntry, /) -> str:
        """The content of one document."""
        ...

    def count_bytes(self) -> int:
        """Size of the files that are not documents."""
        ...


class CommandResult(Protocol):
    """Result of one command; `exit_code` is None if it was killed at the time limit."""

    @property
    def exit_code(self) -> int | None:
        """Exit status."""
        ...

    def as_json(self) -> dict[str, Any]:
        """The result for the answer; without an exit code if there is none."""
        ...


class CheckRunHandle(Protocol):
    """The checks of one call. `finish` is called after the last one, also if one failed."""

    def run(self, argv: Sequence[str], /) -> CommandResult:
        """Run one command."""
        ...

    def finish(self) -> Sequence[Mapping[str, str]]:
        """Set new files that would govern the agent aside; each with its new place."""
        ...


class PlanReader(Protocol):
    """The plan files in `plans/`."""

    def plan_ids(self) -> list[str]:
        """Sorted ids of all plans that have a file."""
        ...

    def listed_ids(self) -> list[str]:
        """Sorted ids of the plans that lists contain: those changed last."""
        ...

    def count_unlisted(self) -> int:
        """Number of plans that lists leave out."""
        ...

    def read(self, plan_id: str) -> StoredPlan | None:
        """The plan with this id; None if it has no file."""
        ...

    def find_by_hash(self, plan_hash: str) -> StoredPlan | None:
        """The plan whose file has this hash now."""
        ...


class LogReader(Protocol):
    """The audit log, for reading and verifying."""

    def records(self, since_seq: int) -> Iterator[Record]:
        """Iterate over the records from a sequence number on."""
        ...

    def verify(self, report_progress: Callable[[int, int | None], None]) -> Mapping[str, Any]:
        """Verify the whole log and return the verdict."""
        ...

    def catch_up(self) -> Mapping[str, Any]:
        """Verify what is new in the log; return the verdict and the head before this call."""
        ...
