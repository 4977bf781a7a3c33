"""Views that tools read the workspace through, and the answers they return. A tool never touches the disk.

Each tool asks for the narrowest view that will do; the boundary passes one object that has all of them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kaiza.domain import errors
from kaiza.domain.audit.projection import AuditState, Session
from kaiza.domain.caps import Caps
from kaiza.domain.manifest.report import OutsideReport
from kaiza.domain.paths.rel_path import FileEntry, RelPath
from kaiza.tools.handles import (
    CacheHandle,
    CheckRunHandle,
    ListableDirectory,
    LogReader,
    PlanReader,
    ReadableFile,
    Walk,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The output of a tool and the changes that it proposes; the boundary makes them."""

    output: Mapping[str, Any]
    changes: Sequence[Any] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)
    """The `detail` member of the call's record."""
    diagnostics: Sequence[str] = ()
    """Notes for the client on how the output came about, such as that a scan was stopped. Never an error."""
    exempt: bool = False
    """Whether its changes only undo what the plan had allowed and counted; they are exempt from scope and limits."""


@dataclass(frozen=True, slots=True)
class PlanDraft:
    """A new plan for `plans/`. It never replaces one."""

    plan_id: str
    content: bytes


@dataclass(frozen=True, slots=True)
class ReportDraft:
    """A report for `docs/reports/`."""

    name: str
    content: bytes


class ProgressView(Protocol):
    """The client that waits for the call."""

    def report_progress(self, done: int, total: int | None, /) -> None:
        """Report how many items of how many are processed. May be called often: most reports are dropped."""
        ...


class CallView(ProgressView, Protocol):
    """Limits of one call."""

    @property
    def caps(self) -> Caps:
        """Limits on time and size."""
        ...

    def is_out_of_time(self) -> bool:
        """Whether the call's time is up."""
        ...


class FilesView(CallView, Protocol):
    """Files of the workspace. The resolved path is judged before a file is opened."""

    @property
    def root(self) -> str:
        """The workspace's root."""
        ...

    def open_file(self, path: RelPath) -> ReadableFile:
        """Open a regular file for reading."""
        ...

    def open_directory(self, path: RelPath) -> ListableDirectory:
        """Open a directory for listing."""
        ...

    def stat(self, path: RelPath) -> FileEntry:
        """Metadata of a path, without opening it."""
        ...

    def walk(self, start: RelPath, *, include_ignored: bool, over: Callable[[], bool], since: str = "") -> Walk:
        """Walk a directory in the order of paths, from `since` on, without following links, until `over` is true."""
        ...

    def is_unreadable(self, path: RelPath) -> bool:
        """Whether the content of this path must not be read."""
        ...


class ProjectView(FilesView, Protocol):
    """Files of the workspace, and its version control."""

    def read_vcs_head(self) -> Mapping[str, str] | None:
        """Commit of the checkout, and its branch unless it is detached; None without a repository or a commit."""
        ...


class PreImagesView(FilesView, Protocol):
    """Files of the workspace, and the pre-images of changed files."""

    def stored_size(self, digest: str) -> int | None:
        """Size of a pre-image; None if it is not stored."""
        ...

    def stored_content(self, digest: str) -> bytes:
        """Bytes of a pre-image."""
        ...


class PlansView(Protocol):
    """Plans of the workspace."""

    @property
    def caps(self) -> Caps:
        """Limits on time and size."""
        ...

    @property
    def plans(self) -> PlanReader:
        """The plans in `plans/`."""
        ...


class AuditView(ProgressView, Protocol):
    """Records of the audit log."""

    @property
    def caps(self) -> Caps:
        """Limits on time and size."""
        ...

    @property
    def log(self) -> LogReader:
        """The audit log."""
        ...


class SessionView(Protocol):
    """The session of the call, and the state projected from the log."""

    @property
    def caps(self) -> Caps:
        """Limits on time and size."""
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
        """Records of all changes since the session's first, in order; other sessions' included."""
        ...

    def changes_since(self, request_ids: Collection[str]) -> Sequence[Mapping[str, Any]]:
        """Records of all changes since the first of these calls, in order."""
        ...


class EndView(ChangesView, Protocol):
    """The session's changes, recorded and other, for its end."""

    def end_manifest(self) -> OutsideReport:
        """Compare the workspace with the session's begin and the log."""
        ...


class RecoveryView(SessionView, PlansView, AuditView, Protocol):
    """Plans, log and crash recovery, for the beginning of a session."""

    @property
    def implies_session(self) -> bool:
        """Whether later calls may leave the session's id out."""
        ...

    @property
    def arrival(self) -> str | None:
        """Sentence about a workspace that came from elsewhere or was bound just now; None if there is none."""
        ...

    @property
    def state_id(self) -> str:
        """Id of the state directory."""
        ...

    def begin_manifest(self) -> None:
        """Take the manifest of the workspace, with which the end of the session is compared."""
        ...

    def note_served(self) -> str | None:
        """Note that this process serves the session; the id under which it does, None if it cannot be noted."""
        ...

    @property
    def reading_progress(self) -> Mapping[str, int] | None:
        """Bytes of the log read, and bytes in all, while its state is partial; else None."""
        ...

    def recover(self) -> list[dict[str, Any]] | None:
        """Finish or roll back the changes that a crash interrupted; return what was done, None if not known yet."""
        ...

    def adopt_settings(self) -> list[str]:
        """Adopt stricter settings that a person wrote; return the keys of looser ones, which wait for a person."""
        ...


class ReportView(SessionView, Protocol):
    """Time, id and lock state, for writing a report."""

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


class ChecksView(ProgressView, Protocol):
    """Commands that check a phase of a plan."""

    @property
    def caps(self) -> Caps:
        """Limits on time and size."""
        ...

    @property
    def current_refusal(self) -> Callable[[], errors.SystemError | None]:
        """Judges the call again; returns the refusal if it is not allowed any more."""
        ...

    def phase_commands(self, plan_hash: str, phase_id: str) -> Sequence[Sequence[str]]:
        """Check commands of one phase of a plan."""
        ...

    def begin_checks(self) -> CheckRunHandle:
        """Prepare to run checks; INSUFFICIENT_PERMISSIONS if this server cannot run them here."""
        ...


class ContextView(Protocol):
    """Context caches of the workspace."""

    @property
    def caps(self) -> Caps:
        """Limits on time and size."""
        ...

    def is_out_of_time(self) -> bool:
        """Whether the call's time is up."""
        ...

    def list_caches(self) -> Sequence[str]:
        """Names of the caches, sorted."""
        ...

    def has_manifest(self, name: str, /) -> bool:
        """Whether a cache has a manifest, sound or not."""
        ...

    def open_cache(self, name: str, /) -> CacheHandle:
        """Open a cache; CONTEXT_CACHE_MISSING if it cannot be reached."""
        ...


class ServerView(Protocol):
    """Facts about the server."""

    @property
    def server_info(self) -> Mapping[str, Any]:
        """What `server_info` answers."""
        ...


class WorkspaceView(
    ProjectView, PreImagesView, EndView, RecoveryView, ReportView, ChecksView, ContextView, ServerView, Protocol
):
    """All views in one. The boundary passes it; a tool declares the part that it needs."""
