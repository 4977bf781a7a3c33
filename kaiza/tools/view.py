"""Views that tools read the workspace through, and the answers they return. A tool never touches the disk.

Each tool asks for the narrowest view that will do; the boundary passes one object that has all of them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kaiza.domain import errors
from kaiza.domain.audit.projection import AuditState, Session
from kaiza.domain.caps import Caps
from kaiza.domain.paths.file_entry import FileEntry
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.parser import StoredPlan
from kaiza.tools.handles import ListableDirectory, ReadableFile, Walk


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
class PlanDraft:
    """A new plan that the tool wants put into `plans/`; never in place of another."""

    plan_id: str
    content: bytes


@dataclass(frozen=True, slots=True)
class ReportDraft:
    """A report that the tool wants put into `docs/reports/`."""

    name: str
    content: bytes


class PlanReader(Protocol):
    """What is in `plans/`."""

    def plan_ids(self) -> list[str]:
        """Every plan_id that has a file, in order."""
        ...

    def read(self, plan_id: str) -> StoredPlan | None:
        """The plan of that name, if it has a file."""
        ...

    def find_by_hash(self, plan_hash: str) -> StoredPlan | None:
        """The plan whose bytes have this hash now."""
        ...


class LogReader(Protocol):
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


class CallView(Protocol):
    """Bounds of one call."""

    @property
    def caps(self) -> Caps:
        """Bounds on time and size."""
        ...

    def is_out_of_time(self) -> bool:
        """Whether the call's time is up."""
        ...


class FilesView(CallView, Protocol):
    """Files of the workspace; every path is judged where it really is before it is opened."""

    @property
    def root(self) -> str:
        """The workspace's root."""
        ...

    def open_file(self, path: RelPath) -> ReadableFile:
        """A regular file that may be read."""
        ...

    def open_directory(self, path: RelPath) -> ListableDirectory:
        """A directory that may be listed."""
        ...

    def stat(self, path: RelPath) -> FileEntry:
        """What is at a path, without opening it."""
        ...

    def walk(self, start: RelPath, *, include_ignored: bool, over: Callable[[], bool], since: str = "") -> Walk:
        """Everything below a directory, in order, without following links; from `since` on, itself included."""
        ...

    def is_unreadable(self, path: RelPath) -> bool:
        """Whether the content of this path is hidden."""
        ...


class PreImagesView(FilesView, Protocol):
    """Files of the workspace, and contents that changes replaced."""

    def stored_size(self, digest: str) -> int | None:
        """Size of a content that was replaced; None where it is not kept."""
        ...

    def stored_content(self, digest: str) -> bytes:
        """A content that was replaced, whole."""
        ...


class PlansView(Protocol):
    """Plans of the workspace."""

    @property
    def caps(self) -> Caps:
        """Bounds on time and size."""
        ...

    @property
    def plans(self) -> PlanReader:
        """The plans in `plans/`."""
        ...


class AuditView(Protocol):
    """Records of the audit log."""

    @property
    def caps(self) -> Caps:
        """Bounds on time and size."""
        ...

    @property
    def log(self) -> LogReader:
        """The audit log."""
        ...


class SessionView(Protocol):
    """The session of the call, and the state projected from the log."""

    @property
    def caps(self) -> Caps:
        """Bounds on time and size."""
        ...

    @property
    def session(self) -> Session:
        """The session of the call."""
        ...

    @property
    def audit_state(self) -> AuditState:
        """State projected from the log."""
        ...


class ChangesView(SessionView, Protocol):
    """Changes that were recorded."""

    def session_changes(self) -> Sequence[Mapping[str, Any]]:
        """Records of all changes since the session's first, in order."""
        ...

    def changes_since(self, request_ids: Collection[str]) -> Sequence[Mapping[str, Any]]:
        """Records of all changes since the first of these calls', in order."""
        ...


class RecoveryView(SessionView, PlansView, AuditView, Protocol):
    """What a session begins with."""

    def recover(self) -> list[dict[str, Any]]:
        """Finish or take back what an earlier crash left open; return what was done."""
        ...


class ReportView(SessionView, Protocol):
    """What a report is written with."""

    @property
    def now(self) -> str:
        """Time of the call."""
        ...

    @property
    def request_id(self) -> str:
        """Id of the call."""
        ...

    @property
    def can_release(self) -> bool:
        """Whether a report may still unlock its role."""
        ...


class ChecksView(Protocol):
    """Commands that check a phase of a plan."""

    @property
    def current_refusal(self) -> Callable[[], errors.SystemError | None]:
        """What stops by now what was allowed when the call began."""
        ...

    def phase_commands(self, plan_hash: str, phase_id: str) -> Sequence[Sequence[str]]:
        """Commands by which a phase of a plan is checked."""
        ...

    def run_check(self, argv: Sequence[str]) -> dict[str, Any]:
        """Run one command and return what it came to."""
        ...

    def snapshot_protected(self) -> Any:
        """A snapshot of the files that govern the agent."""
        ...

    def changed_protected(self, before: Any) -> list[str]:
        """Paths of a snapshot that were altered since."""
        ...


class ServerView(Protocol):
    """Facts about the server."""

    @property
    def server_info(self) -> Mapping[str, Any]:
        """What `server_info` answers."""
        ...


class WorkspaceView(PreImagesView, ChangesView, RecoveryView, ReportView, ChecksView, ServerView, Protocol):
    """All views in one: what the boundary passes to a tool, which asks for less."""
