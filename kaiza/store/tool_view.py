"""Read-only view of the workspace for one tool call: the implementation of `kaiza.tools.view.WorkspaceView`.

The resolved path is checked against the read rules before any bytes are returned.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kaiza.domain import errors
from kaiza.domain.audit.inverse_changes import took_effect
from kaiza.domain.audit.projection import MAX_RELEASES_PER_DAY, AuditState, Session, day_before
from kaiza.domain.audit.record import GENESIS, LogHead, Record
from kaiza.domain.caps import Caps
from kaiza.domain.manifest.report import OutsideReport
from kaiza.domain.paths.rel_path import FileEntry, RelPath
from kaiza.store.audit.reader import read_records
from kaiza.store.audit.verification.verify import verdict_output, verify_log
from kaiza.store.crash_recovery import recover
from kaiza.store.documents.plan_files import PlanFiles
from kaiza.store.files.confined_root import OpenDirectory, OpenFile
from kaiza.store.session_manifest import MAX_SECONDS, begin_manifest, end_manifest
from kaiza.store.settings_adoption import adopt_stricter_edits
from kaiza.store.workspace import Workspace

if TYPE_CHECKING:
    from kaiza.store.checks.check_run import CheckRun
    from kaiza.store.context.cache_files import ContextCaches, OpenCache
    from kaiza.store.files import tree_walk


@dataclass(frozen=True, slots=True)
class ToolView:
    """What one tool call may read: files, plans, the log and the state projected from it."""

    workspace: Workspace
    _session: Session | None
    caps: Caps
    server_info: Mapping[str, Any]
    refuse_read: Callable[[RelPath], errors.SystemError]
    is_out_of_time: Callable[[], bool]
    now: str
    request_id: str
    report_progress: Callable[[int, int | None], None] = lambda _done, _total: None
    current_refusal: Callable[[], errors.SystemError | None] = lambda: None
    """Refusal that applies now although the call was allowed when it began, such as a freeze since then."""
    unsandboxed_checks: bool = False
    """Whether the operator allows checks without a sandbox."""
    implies_session: bool = True
    """Whether later calls may leave the session's id out."""

    @property
    def root(self) -> str:
        """Workspace root of the session."""
        return self.workspace.root

    @property
    def session(self) -> Session:
        """The session of the call; SESSION_EXPECTED if the rules let a call without one pass."""
        if self._session is None:
            raise errors.SystemError.invariant_violation("SESSION_EXPECTED")
        return self._session

    @property
    def can_release(self) -> bool:
        """Whether a report may release the role's lock: if the settings allow it, three times a day."""
        lock = self.audit_state.locks.get(self.session.role)
        # After a violated invariant, such as a forged approval, the agent's own word must not unlock.
        if self.workspace.settings.release_by_person or (lock and lock.error_code == "INVARIANT_VIOLATION"):
            return False
        if self.workspace.binding.is_foreign:
            return False
        return self.audit_state.count_releases_since(self.session.role, day_before(self.now)) < MAX_RELEASES_PER_DAY

    @property
    def audit_state(self) -> AuditState:
        """State projected from the log."""
        return self.workspace.audit_state

    @property
    def last_seq(self) -> int:
        """Sequence number of the last known record; 0 if there is none."""
        head = self.workspace.log.head
        return head.seq if head is not None else 0

    @property
    def reading_progress(self) -> Mapping[str, int] | None:
        """Bytes of the log read, and bytes in all, while the state is partial."""
        return self.workspace.projection.progress

    def read_records(self, since_seq: int) -> Iterator[Record]:
        """Records from a sequence number on, in order, lazily."""
        return read_records(self.workspace.root, since_seq=since_seq)

    def verify_log(self) -> Mapping[str, Any]:
        """Verify the whole log; progress is in bytes."""
        return verdict_output(verify_log(self.workspace.root, progress=self.report_progress))

    def verify_news(self) -> Mapping[str, Any]:
        """Verify what is new in the log; return its head, and whether the older part has been verified."""
        tail = self.workspace.log.catch_up()
        head = tail.head or LogHead(0, GENESIS, 0)
        self.workspace.projection.start_verification()
        verdict = self.workspace.damage() or tail.verdict
        checked = "whole" if self.workspace.log.background_check.is_done else "tail"
        return {"seq": head.seq, "entry_hash": head.entry_hash, "verdict": verdict, "checked": checked}

    def session_changes(self) -> list[Record]:
        """Records of all changes since the first one of this session, in order, including those of other sessions."""
        seqs = self.audit_state.changed.get(self.session.session_id)
        records = self._until_out_of_time(self.read_records(seqs[0])) if seqs else ()
        return [_without_rest(record) for record in records if took_effect(record)]

    def changes_since(self, request_ids: Collection[str]) -> list[Record]:
        """Records of all changes since the earliest of these calls, in order.

        Reads the log from its end, down to records from elsewhere. An undo by a person is included, but cannot be
        asked for: it has no request id.
        """
        missing = set(request_ids)
        changes: list[Record] = []
        for record in self._until_out_of_time(read_records(self.root, reverse=True)):
            if not missing or record.seq <= self.workspace.binding.adopted_seq:
                break
            if took_effect(record):
                missing.discard(record.request_id or "")
                changes.append(_without_rest(record))
        return changes[::-1]

    def _until_out_of_time(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            # An error, not a partial list: an undo that missed a later change would overwrite it.
            if self.is_out_of_time():
                raise errors.SystemError.tool_failure("CAP_EXCEEDED", cause={"cap": "timeout"})
            yield record

    @property
    def arrival(self) -> str | None:
        """Sentence about a workspace that came from elsewhere or was bound just now; None if there is none."""
        if not self.workspace.binding.is_foreign:
            return self.workspace.notice
        return (
            f"This workspace came from elsewhere, with {self.last_seq} records. "
            "Changes are refused until a person runs kaiza adopt."
        )

    @property
    def state_id(self) -> str:
        """Id of the state directory, which the session's record carries."""
        return self.workspace.state_key.state_id

    def begin_manifest(self) -> None:
        """Take the manifest of the workspace, with which the end of the session is compared."""
        begin_manifest(self.workspace, self.session.session_id)

    def end_manifest(self) -> OutsideReport:
        """Compare the workspace with the session's begin and the log, and save the report."""
        # A third of the time limit, so that the answer and its record are always in time.
        seconds = min(MAX_SECONDS, self.caps.tool_timeout_ms / 3000)
        return end_manifest(self.workspace, self.session.session_id, self.session.begun_at, self.now, seconds)

    def note_served(self) -> str | None:
        """Note that this process serves the session; the id under which it does, None if it cannot be noted."""
        return self.workspace.served_sessions.note(self.session.session_id)

    def recover(self) -> list[dict[str, Any]] | None:
        """Finish or roll back changes that a crash interrupted; what was done, one item a change. None: not known."""
        return recover(self.workspace, self.now, self.request_id)

    def adopt_settings(self) -> list[str]:
        """Adopt stricter settings that a person wrote here; the keys of looser ones, which wait for a person."""
        adopt_stricter_edits(self.workspace, self.now)
        return [setting.key for setting in self.workspace.settings_layers.list_loosening()]

    def phase_commands(self, plan_hash: str, phase_id: str) -> Sequence[Sequence[str]]:
        """The `verify` commands of a phase of a plan."""
        stored = self.plans.find_by_hash(plan_hash)
        plan = stored.parsed.plan if stored else None
        phase = plan.phase(phase_id) if plan else None
        return phase.verify if phase else ()

    def begin_checks(self) -> "CheckRun":
        """Prepare to run checks; INSUFFICIENT_PERMISSIONS if this server cannot run them here."""
        from kaiza.store.checks import check_run  # noqa: PLC0415  needed by run_checks only

        return check_run.begin_checks(self.workspace.checked(), unsandboxed=self.unsandboxed_checks)

    def list_caches(self) -> list[str]:
        """Names of the context caches, sorted."""
        return self._context_caches().list_caches()

    def has_manifest(self, name: str) -> bool:
        """Whether a context cache has a manifest, sound or not."""
        return self._context_caches().has_manifest(name)

    def open_cache(self, name: str) -> "OpenCache":
        """Open a context cache; CONTEXT_CACHE_MISSING if it cannot be reached."""
        return self._context_caches().open_cache(name)

    def _context_caches(self) -> "ContextCaches":
        from kaiza.store.context.cache_files import ContextCaches  # noqa: PLC0415  needed by context tools only

        return ContextCaches(self.workspace.files.fd)

    def stored_size(self, digest: str) -> int | None:
        """Size of a pre-image; None if it is not in the blob store."""
        return self.workspace.blobs.size(digest)

    def stored_content(self, digest: str) -> bytes:
        """A pre-image, whole."""
        return b"".join(self.workspace.blobs.chunks(digest))

    @property
    def plans(self) -> PlanFiles:
        """Plan files of the workspace."""
        return self.workspace.plans

    def open_file(self, path: RelPath) -> OpenFile:
        """Open a regular file for reading, unless its resolved path is denied, or another name of the file."""
        file = self.workspace.files.open_file(path, self._require_readable)
        if self.workspace.is_linked_secret(file.real, file.status):
            file.close()
            raise self.refuse_read(file.real)
        return file

    def open_directory(self, path: RelPath) -> OpenDirectory:
        """Open a directory for listing, unless its resolved path is denied."""
        return self.workspace.files.open_directory(path, self._require_readable)

    def stat(self, path: RelPath) -> FileEntry:
        """Metadata of what a path leads to, without opening it."""

        def require_outside_repository(real: RelPath) -> None:
            # Objects are named by the hash of their content: that one exists would confirm a guessed secret.
            if self.workspace.is_in_repository(real):
                raise self.refuse_read(real)

        return self.workspace.files.stat(path, require_outside_repository)

    def walk(
        self, start: RelPath, *, include_ignored: bool, over: Callable[[], bool], since: str = ""
    ) -> "tree_walk.TreeWalk":
        """Walk a directory in order from the path `since` on, without following links."""
        from kaiza.store.files import tree_walk  # noqa: PLC0415  needed by tools that walk only

        workspace = self.workspace
        return tree_walk.TreeWalk(
            workspace.files,
            start,
            include_ignored=include_ignored,
            over=over,
            since=since,
            is_refused=workspace.is_linked_secret,
        )

    def read_vcs_head(self) -> dict[str, str] | None:
        """Commit of the checkout, and its branch unless it is detached."""
        from kaiza.store import git  # noqa: PLC0415  needed by project_info only

        return git.read_head(self.root)

    def is_unreadable(self, path: RelPath) -> bool:
        """Whether no tool may read this path."""
        return self.workspace.is_unreadable(path)

    def _require_readable(self, real: RelPath) -> None:
        if self.workspace.is_unreadable(real):
            raise self.refuse_read(real)


def _without_rest(record: Record) -> Record:
    """The record with the members that an undo needs: a quarter of it. There may be thousands."""
    needed = ("seq", "kind", "request_id", "session_id", "tool_name", "plan_hash", "changes", "detail")
    return Record({name: record.members[name] for name in needed})
