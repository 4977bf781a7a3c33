"""The workspace as one call may see it: every path is judged where it really is, before a byte is given out."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kaiza.domain import errors
from kaiza.domain.audit import record
from kaiza.domain.audit.inverse_changes import took_effect
from kaiza.domain.audit.projection import MAX_RELEASES_PER_DAY, AuditState, Session, day_before
from kaiza.domain.caps import Caps
from kaiza.domain.paths.file_entry import FileEntry
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.audit.reader import read_records
from kaiza.store.audit.verification.verify import verify_log
from kaiza.store.crash_recovery import recover
from kaiza.store.documents.plan_files import PlanFiles
from kaiza.store.files.confined_root import OpenDirectory, OpenFile
from kaiza.store.workspace import Workspace, verdict_output

if TYPE_CHECKING:
    from kaiza.store import check_runner as checks
    from kaiza.store.files import tree_walk as scan


@dataclass(frozen=True, slots=True)
class AuditLogView:
    """The record, read."""

    workspace: Workspace

    def records(self, since_seq: int) -> Iterator[dict[str, Any]]:
        """Records in order from a place on, lazily."""
        return read_records(self.workspace.root, since_seq=since_seq)

    def verify(self) -> Mapping[str, Any]:
        """The whole log judged."""
        return verdict_output(verify_log(self.workspace.root))

    def catch_up(self) -> Mapping[str, Any]:
        """What is new in the log judged, and its head before this call; whether the rest was verified too."""
        judged = self.workspace.log.catch_up()
        head = judged.head or record.LogHead(0, record.GENESIS, 0)
        self.workspace.log.background_check.start()
        verdict = self.workspace.damage() or judged.verdict
        checked = "whole" if self.workspace.log.background_check.is_done else "tail"
        return {"seq": head.seq, "entry_hash": head.entry_hash, "verdict": verdict, "checked": checked}


@dataclass(frozen=True, slots=True)
class ToolView:
    """What a tool gets to see for one call."""

    workspace: Workspace
    _session: Session | None
    caps: Caps
    server_info: Mapping[str, Any]
    refuse_read: Callable[[RelPath], errors.SystemError]
    is_out_of_time: Callable[[], bool]
    now: str
    request_id: str
    current_refusal: Callable[[], errors.SystemError | None] = lambda: None
    """What stops by now what was allowed when the call began."""

    @property
    def root(self) -> str:
        """The session's workspace root."""
        return self.workspace.root

    @property
    def session(self) -> Session:
        """The session of the call; a rule has seen to it that there is one."""
        if self._session is None:
            raise errors.SystemError.invariant_violation("SESSION_EXPECTED")
        return self._session

    @property
    def can_release(self) -> bool:
        """Whether a report may still unlock the session's role: three times a day, and only where reports may."""
        if self.workspace.settings.release_by_person:
            return False
        return self.audit_state.count_releases_since(self.session.role, day_before(self.now)) < MAX_RELEASES_PER_DAY

    @property
    def audit_state(self) -> AuditState:
        """What the record says."""
        return self.workspace.audit_state

    @property
    def last_seq(self) -> int:
        """The number of the last record that is known so far."""
        head = self.workspace.log.head
        return head.seq if head is not None else 0

    @property
    def log(self) -> AuditLogView:
        """The record, read."""
        return AuditLogView(self.workspace)

    def session_changes(self) -> list[Mapping[str, Any]]:
        """The records of all changes since the session's first, in order."""
        seqs = self.audit_state.changed.get(self.session.session_id)
        since = self.log.records(seqs[0]) if seqs else iter(())
        return [one for one in self._until_out_of_time(since) if took_effect(one)]

    def changes_since(self, request_ids: Collection[str]) -> list[Mapping[str, Any]]:
        """The records of all changes since the first of these calls', in order.

        Searched from the newest on. A person's undo is among them only as that: no call has its name.
        """
        left = set(request_ids)
        found: list[Mapping[str, Any]] = []
        for one in self._until_out_of_time(read_records(self.workspace.root, reverse=True)):
            if not left:
                break
            if took_effect(one):
                left.discard(one["request_id"])
                found.append(one)
        return found[::-1]

    def _until_out_of_time(self, records: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The records, as long as the call has time: an undo that was not seen could not be respected."""
        for one in records:
            if self.is_out_of_time():
                raise errors.SystemError.tool_failure("CAP_EXCEEDED", cause={"cap": "timeout"})
            yield one

    def recover(self) -> list[dict[str, Any]]:
        """Bring to an end what an earlier crash left, and tell what was done."""
        return recover(self.workspace, self.now, self.request_id)

    def phase_commands(self, plan_hash: str, phase_id: str) -> Sequence[Sequence[str]]:
        """The commands by which a phase of a plan is checked."""
        stored = self.plans.find_by_hash(plan_hash)
        plan = stored.parsed.plan if stored else None
        phase = plan.phase(phase_id) if plan else None
        return phase.verify if phase else ()

    def snapshot_protected(self) -> "checks.ProtectedSnapshot":
        """What governs the agent, as it is now."""
        from kaiza.store import check_runner as checks  # noqa: PLC0415  only run_checks needs it

        return checks.snapshot_protected(self.workspace.files)

    def run_check(self, argv: Sequence[str]) -> dict[str, Any]:
        """Run one command and tell what it came to; one whose time was up has no exit status."""
        from kaiza.store import check_runner as checks  # noqa: PLC0415  only run_checks needs it

        done = checks.run(argv, self.workspace.root, self.workspace.settings.checks_seconds)
        told: dict[str, Any] = {
            "argv": list(done.argv),
            "duration_ms": done.duration_ms,
            "output": done.output,
            "truncated": done.truncated,
        }
        return told if done.exit_code is None else {**told, "exit_code": done.exit_code}

    def changed_protected(self, before: "checks.ProtectedSnapshot") -> list[str]:
        """What of it was altered since; other processes' records in the log are no alteration."""
        from kaiza.store import check_runner as checks  # noqa: PLC0415  only run_checks needs it

        return checks.changed_protected(before, self.workspace.files)

    def stored_size(self, digest: str) -> int | None:
        """How large a content is that was replaced; None where it is not kept."""
        return self.workspace.blobs.size(digest)

    def stored_content(self, digest: str) -> bytes:
        """A content that was replaced, whole."""
        return b"".join(self.workspace.blobs.chunks(digest))

    @property
    def plans(self) -> PlanFiles:
        """What is in `plans/`."""
        return self.workspace.plans

    def open_file(self, path: RelPath) -> OpenFile:
        """A regular file that may be read."""
        return self.workspace.files.open_file(path, self._require_readable)

    def open_directory(self, path: RelPath) -> OpenDirectory:
        """A directory that may be listed."""
        return self.workspace.files.open_directory(path, self._require_readable)

    def stat(self, path: RelPath) -> FileEntry:
        """What a path leads to, without opening it."""
        return self.workspace.files.stat(path, lambda _real: None)

    def walk(
        self, start: RelPath, *, include_ignored: bool, over: Callable[[], bool], since: str = ""
    ) -> "scan.TreeWalk":
        """Everything below a directory, in order, without following links; from the path `since` on."""
        from kaiza.store.files import tree_walk as scan  # noqa: PLC0415  only what walks needs it

        return scan.walk(self.workspace.files, start, include_ignored=include_ignored, over=over, since=since)

    def is_unreadable(self, path: RelPath) -> bool:
        """Whether the content of this path is nobody's business."""
        return self.workspace.is_unreadable(path)

    def _require_readable(self, real: RelPath) -> None:
        if self.workspace.is_unreadable(real):
            raise self.refuse_read(real)
