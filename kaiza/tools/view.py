"""The view through which tools read the workspace, and the answer they return. A tool never touches the disk.

The store implements the view and what it opens. There is no method that writes: changes are proposed in the answer.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from kaiza.domain import errors
from kaiza.domain.audit.projection import AuditState, Session
from kaiza.domain.audit.record import Record
from kaiza.domain.caps import Caps
from kaiza.domain.context.cache_format import CacheEntry, Manifest
from kaiza.domain.manifest.report import OutsideReport
from kaiza.domain.paths.rel_path import FileEntry, RelPath
from kaiza.domain.plans.parser import StoredPlan


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


class FileContent(Protocol):
    """The content of an open file."""

    size: int

    def read(self, size: int) -> bytes:
        """Return the next bytes; empty at the end."""


class ReadableFile(FileContent, Protocol):
    """A regular file, open for reading."""

    real: RelPath
    mode: int
    nlink: int
    stamp: tuple[int, ...]


class ListableDirectory(Protocol):
    """A directory, open for listing."""

    real: RelPath

    def names(self, after: str = "", most: int = ...) -> Sequence[str]:
        """Names of its entries, sorted: those after `after`, at most `most` of them."""

    def stat_entry(self, name: str) -> FileEntry | None:
        """Metadata of one entry, links not followed; None if it is gone."""


class WalkEntry(Protocol):
    """One entry of a walk. Valid only until the next one."""

    @property
    def path(self) -> str:
        """Its path, joined by slashes."""

    @property
    def type(self) -> str:
        """One of file, directory, link, other."""

    @property
    def real(self) -> RelPath:
        """Its path as a value."""

    def stat_entry(self) -> FileEntry | None:
        """Its size and time; None if it is gone."""

    def open(self) -> AbstractContextManager[FileContent] | None:
        """Open its content; None if it is not a readable regular file."""


class Walk(Protocol):
    """A directory walk in the order of paths, and its counts so far."""

    listed_count: int
    visited_count: int
    unlisted_count: int
    ignored_directory_count: int
    stopped_early: bool

    def __iter__(self) -> Iterator[WalkEntry]: ...


class PlanReader(Protocol):
    """The plan files in `plans/`."""

    def plan_ids(self) -> list[str]:
        """Sorted ids of all plans that have a file."""

    def listed_ids(self) -> list[str]:
        """Sorted ids of the plans that lists contain: those changed last."""

    def count_unlisted(self) -> int:
        """Number of plans that lists leave out."""

    def read(self, plan_id: str) -> StoredPlan | None:
        """The plan with this id; None if it has no file."""

    def find_by_hash(self, plan_hash: str) -> StoredPlan | None:
        """The plan whose file has this hash now."""


class CacheHandle(Protocol):
    """An open context cache. Everything read is verified; CONTEXT_CACHE_INVALID if it is not sound."""

    def read_manifest(self) -> Manifest:
        """The manifest, checked against the index and the names of the files."""

    def read_documents(self, manifest: Manifest, /) -> Iterator[tuple[CacheEntry, str]]:
        """Each document with its content."""

    def read_document(self, entry: CacheEntry, /) -> str:
        """The content of one document."""

    def count_bytes(self) -> int:
        """Size of the files that are not documents."""


class CommandResult(Protocol):
    """Result of one command."""

    def as_json(self) -> dict[str, Any]:
        """The result for the answer; without an exit code if it was killed at the time limit."""


class CheckRunHandle(Protocol):
    """The checks of one call. `finish` is called after the last one, also if one failed."""

    def run(self, argv: Sequence[str], /) -> CommandResult:
        """Run one command."""

    def finish(self) -> Sequence[Mapping[str, str]]:
        """Set new files that would govern the agent aside; each with its new place."""


class CachesView(Protocol):
    """The limits of a call and the context caches: all that the context tools need, also for `kaiza context`."""

    @property
    def caps(self) -> Caps:
        """Limits on time and size."""

    def is_out_of_time(self) -> bool:
        """Whether the call's time is up."""

    def list_caches(self) -> Sequence[str]:
        """Names of the caches, sorted."""

    def has_manifest(self, name: str, /) -> bool:
        """Whether a cache has a manifest, sound or not."""

    def open_cache(self, name: str, /) -> AbstractContextManager[CacheHandle]:
        """Open a cache; CONTEXT_CACHE_MISSING if it cannot be reached."""


class WorkspaceView(CachesView, Protocol):
    """All that a tool can learn about the workspace, the log and the server during one call."""

    # --- the call

    @property
    def now(self) -> str:
        """Time of the call."""

    @property
    def request_id(self) -> str:
        """Id of the call."""

    @property
    def server_info(self) -> Mapping[str, Any]:
        """What `server_info` answers."""

    def report_progress(self, done: int, total: int | None, /) -> None:
        """Tell the client how many items of how many are processed. May be called often: most reports are dropped."""

    def current_refusal(self) -> errors.SystemError | None:
        """Judge the call again; return the refusal if it is not allowed any more."""

    # --- files. The resolved path is judged before a file is opened.

    @property
    def root(self) -> str:
        """The workspace's root."""

    def open_file(self, path: RelPath) -> AbstractContextManager[ReadableFile]:
        """Open a regular file for reading."""

    def open_directory(self, path: RelPath) -> AbstractContextManager[ListableDirectory]:
        """Open a directory for listing."""

    def stat(self, path: RelPath) -> FileEntry:
        """Metadata of a path, without opening it."""

    def walk(
        self, start: RelPath, *, include_ignored: bool, over: Callable[[], bool], since: str = ""
    ) -> AbstractContextManager[Walk]:
        """Walk a directory in the order of paths, from `since` on, without following links, until `over` is true."""

    def is_unreadable(self, path: RelPath) -> bool:
        """Whether the content of this path must not be read."""

    def read_vcs_head(self) -> Mapping[str, str] | None:
        """Commit of the checkout, and its branch unless it is detached; None without a repository or a commit."""

    def stored_size(self, digest: str) -> int | None:
        """Size of the pre-image of a changed file; None if it is not stored."""

    def stored_content(self, digest: str) -> bytes:
        """Bytes of a pre-image."""

    # --- plans and their checks

    @property
    def plans(self) -> PlanReader:
        """The plans in `plans/`."""

    def phase_commands(self, plan_hash: str, phase_id: str) -> Sequence[Sequence[str]]:
        """Check commands of one phase of a plan."""

    def begin_checks(self) -> CheckRunHandle:
        """Prepare to run checks; INSUFFICIENT_PERMISSIONS if this server cannot run them here."""

    # --- the log

    @property
    def audit_state(self) -> AuditState:
        """State projected from the log."""

    @property
    def reading_progress(self) -> Mapping[str, int] | None:
        """Bytes of the log read, and bytes in all, while its state is partial; else None."""

    def read_records(self, since_seq: int) -> Iterator[Record]:
        """Iterate over the records from a sequence number on."""

    def verify_log(self) -> Mapping[str, Any]:
        """Verify the whole log, report progress in bytes, and return the verdict."""

    def verify_news(self) -> Mapping[str, Any]:
        """Verify the part of the log that is new; return the verdict and the head before this call."""

    def session_changes(self) -> Sequence[Record]:
        """Records of all changes since the session's first, in order; other sessions' included."""

    def changes_since(self, request_ids: Collection[str]) -> Sequence[Record]:
        """Records of all changes since the first of these calls, in order."""

    # --- the session. These tell the store that it begins or ends; no file of the user's is written.

    @property
    def session(self) -> Session:
        """The session of the call."""

    @property
    def implies_session(self) -> bool:
        """Whether later calls may leave the session's id out."""

    @property
    def can_release(self) -> bool:
        """Whether a report may still unlock the session's role."""

    @property
    def arrival(self) -> str | None:
        """Sentence about a workspace that came from elsewhere or was bound just now; None if there is none."""

    @property
    def state_id(self) -> str:
        """Id of the state directory."""

    def recover(self) -> list[dict[str, Any]] | None:
        """Finish or roll back the changes that a crash interrupted; return what was done, None if not known yet."""

    def adopt_settings(self) -> list[str]:
        """Adopt stricter settings that a person wrote; return the keys of looser ones, which wait for a person."""

    def note_served(self) -> str | None:
        """Note that this process serves the session; the id under which it does, None if it cannot be noted."""

    def begin_manifest(self) -> None:
        """Take the manifest of the workspace that `end_manifest` compares with."""

    def end_manifest(self) -> OutsideReport:
        """Compare the workspace with its manifest and the log, and keep the report."""
