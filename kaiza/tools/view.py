"""What a tool may see, and what it gives back. A tool proposes; it never touches the disk."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from kaiza.domain import errors
from kaiza.domain.caps import Caps
from kaiza.domain.lint import Reading
from kaiza.domain.paths import RelPath
from kaiza.domain.session import Facts, Session


@dataclass(frozen=True, slots=True)
class Answer:
    """Something to say and, perhaps, changes the tool wants made."""

    output: Mapping[str, Any]
    changes: Sequence[Any] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)
    """What the record tells of it beside its changes."""
    exempt: bool = False
    """Whether its changes only put back what was done under the plan, which has allowed and counted that already."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A new plan that the tool wants put into `plans/`; never in place of another."""

    plan_id: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Report:
    """A report that the tool wants put into `docs/reports/`."""

    name: str
    content: bytes


class OpenFile(Protocol):
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

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Entry(Protocol):
    """What stands at a path; only a file has a size."""

    @property
    def type(self) -> str:
        """One of file, directory, link, other."""
        ...

    @property
    def size(self) -> int | None:
        """Its bytes."""
        ...

    @property
    def modified(self) -> str:
        """When it was last changed."""
        ...

    @property
    def mode(self) -> int:
        """Its permissions."""
        ...

    @property
    def real(self) -> RelPath:
        """Where it really is."""
        ...


class OpenDirectory(Protocol):
    """A directory, open for listing; closed by its `with`."""

    real: RelPath

    def names(self, after: str = "", most: int = ...) -> Sequence[str]:
        """What stands in it, sorted, after a name and at most so many."""
        ...

    def entry(self, name: str) -> "Entry | None":
        """What stands at a name in it, a link as a link; None if it is gone by now."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Content(Protocol):
    """The content of a file met on a walk; closed by its `with`."""

    size: int

    def read(self, size: int) -> bytes:
        """The next bytes; empty at the end."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Found(Protocol):
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

    def entry(self) -> Entry | None:
        """Its size and time; None if it is gone."""
        ...

    def open(self) -> Content | None:
        """Its content, if it is a plain file that lets itself be read."""
        ...


class Walk(Protocol):
    """A walk in the order of paths; closed by its `with`."""

    seen: int
    passed: int
    closed: int
    broken_off: bool

    def __iter__(self) -> Iterator[Found]: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class StoredPlan(Protocol):
    """A plan's file as it is now."""

    @property
    def plan_id(self) -> str:
        """Its name."""
        ...

    @property
    def content(self) -> bytes:
        """Its bytes."""
        ...

    @property
    def reading(self) -> Reading:
        """What they came to."""
        ...


class Plans(Protocol):
    """What is in `plans/`."""

    def names(self) -> list[str]:
        """Every plan_id that has a file, in order."""
        ...

    def read(self, plan_id: str) -> StoredPlan | None:
        """The plan of that name, if it has a file."""
        ...

    def by_hash(self, plan_hash: str) -> StoredPlan | None:
        """The plan whose bytes have this hash now."""
        ...


class Log(Protocol):
    """The record, read."""

    def records(self, since_seq: int) -> Iterator[dict[str, Any]]:
        """Records in order, lazily."""
        ...

    def verify(self) -> Mapping[str, Any]:
        """The whole log judged, as `verify_audit_log` tells it."""
        ...

    def catch_up(self) -> Mapping[str, Any]:
        """What is new in the log judged, and its head before this call."""
        ...


class View(Protocol):
    """The workspace as one call may see it: every path that is opened has been judged."""

    root: str
    caps: Caps
    session: Session
    facts: Facts
    log: Log
    plans: Plans
    server: Mapping[str, Any]
    now: str
    request_id: str
    may_release: bool
    """Whether a report may still unlock its role."""
    refusal_by_now: Callable[[], errors.SystemError | None]
    """What stops by now what was allowed when the call began."""

    def changed(self) -> list[Mapping[str, Any]]:
        """The records of all changes since the session's first, in order."""
        ...

    def changed_by(self, request_ids: Collection[str]) -> list[Mapping[str, Any]]:
        """The records of all changes since the first of these calls', in order."""
        ...

    def recover(self) -> list[dict[str, Any]]:
        """Bring to an end what an earlier crash left, and tell what was done."""
        ...

    def verify(self, plan_hash: str, phase_id: str) -> Sequence[Sequence[str]]:
        """The commands by which a phase of a plan is checked."""
        ...

    def guarded(self) -> Any:
        """What governs the agent, as it is now."""
        ...

    def check(self, argv: Sequence[str]) -> dict[str, Any]:
        """Run one command and tell what it came to."""
        ...

    def meddled(self, before: Any) -> list[str]:
        """What of it was altered since."""
        ...

    def kept(self, digest: str) -> int | None:
        """How large a content is that was replaced; None where it is not kept."""
        ...

    def kept_content(self, digest: str) -> bytes:
        """A content that was replaced, whole."""
        ...

    def open_file(self, path: RelPath) -> OpenFile:
        """A regular file that may be read."""
        ...

    def open_directory(self, path: RelPath) -> OpenDirectory:
        """A directory that may be listed."""
        ...

    def stat(self, path: RelPath) -> Entry:
        """What is at a path, without opening it."""
        ...

    def walk(self, start: RelPath, *, include_ignored: bool, over: Callable[[], bool], since: str = "") -> Walk:
        """Everything below a directory, in order, without following links; from `since` on, itself included."""
        ...

    def unreadable(self, path: RelPath) -> bool:
        """Whether the content of this path is nobody's business."""
        ...

    def over(self) -> bool:
        """Whether the call's time is up."""
        ...
