"""The workspace as one call may see it: every path is judged where it really is, before a byte is given out."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kaiza.domain import errors, record
from kaiza.domain.caps import Caps
from kaiza.domain.file_entry import FileEntry
from kaiza.domain.paths import RelPath
from kaiza.domain.session import MOST_RELEASES, Facts, Session, a_day_before
from kaiza.domain.way_back import happened
from kaiza.store.crash_recovery import recover
from kaiza.store.ground import Ground, verdict_json
from kaiza.store.plans import Plans
from kaiza.store.records import records
from kaiza.store.verify import verify
from kaiza.store.workspace import OpenDirectory, OpenFile

if TYPE_CHECKING:
    from kaiza.store import checks, scan


@dataclass(frozen=True, slots=True)
class SeenLog:
    """The record, read."""

    ground: Ground

    def records(self, since_seq: int) -> Iterator[dict[str, Any]]:
        """Records in order from a place on, lazily."""
        return records(self.ground.root, since_seq=since_seq)

    def verify(self) -> Mapping[str, Any]:
        """The whole log judged."""
        return verdict_json(verify(self.ground.root))

    def catch_up(self) -> Mapping[str, Any]:
        """What is new in the log judged, and its head before this call; whether the rest was verified too."""
        judged = self.ground.log.catch_up()
        head = judged.head or record.Head(0, record.GENESIS, 0)
        self.ground.log.whole.begin()
        verdict = self.ground.damage() or judged.verdict
        checked = "whole" if self.ground.log.whole.is_done else "tail"
        return {"seq": head.seq, "entry_hash": head.entry_hash, "verdict": verdict, "checked": checked}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a tool gets to see for one call."""

    ground: Ground
    _session: Session | None
    caps: Caps
    server: Mapping[str, Any]
    refuse_read: Callable[[RelPath], errors.SystemError]
    over: Callable[[], bool]
    now: str
    request_id: str
    refusal_by_now: Callable[[], errors.SystemError | None] = lambda: None
    """What stops by now what was allowed when the call began."""

    @property
    def root(self) -> str:
        """The session's workspace root."""
        return self.ground.root

    @property
    def session(self) -> Session:
        """The session of the call; a rule has seen to it that there is one."""
        if self._session is None:
            raise errors.SystemError.invariant_violation("SESSION_EXPECTED")
        return self._session

    @property
    def may_release(self) -> bool:
        """Whether a report may still unlock the session's role: three times a day, and only where reports may."""
        if self.ground.settings.release_by_person:
            return False
        return self.facts.releases_since(self.session.role, a_day_before(self.now)) < MOST_RELEASES

    @property
    def facts(self) -> Facts:
        """What the record says."""
        return self.ground.facts

    @property
    def last_seq(self) -> int:
        """The number of the last record that is known so far."""
        head = self.ground.log.head
        return head.seq if head is not None else 0

    @property
    def log(self) -> SeenLog:
        """The record, read."""
        return SeenLog(self.ground)

    def changed(self) -> list[Mapping[str, Any]]:
        """The records of all changes since the session's first, in order."""
        seqs = self.facts.changed.get(self.session.session_id)
        since = self.log.records(seqs[0]) if seqs else iter(())
        return [one for one in self._in_time(since) if happened(one)]

    def changed_by(self, request_ids: Collection[str]) -> list[Mapping[str, Any]]:
        """The records of all changes since the first of these calls', in order.

        Searched from the newest on. A person's undo is among them only as that: no call has its name.
        """
        left = set(request_ids)
        found: list[Mapping[str, Any]] = []
        for one in self._in_time(records(self.ground.root, reverse=True)):
            if not left:
                break
            if happened(one):
                left.discard(one["request_id"])
                found.append(one)
        return found[::-1]

    def _in_time(self, records: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The records, as long as the call has time: an undo that was not seen could not be respected."""
        for one in records:
            if self.over():
                raise errors.SystemError.tool_failure("CAP_EXCEEDED", cause={"cap": "timeout"})
            yield one

    def recover(self) -> list[dict[str, Any]]:
        """Bring to an end what an earlier crash left, and tell what was done."""
        return recover(self.ground, self.now, self.request_id)

    def verify(self, plan_hash: str, phase_id: str) -> Sequence[Sequence[str]]:
        """The commands by which a phase of a plan is checked."""
        stored = self.plans.by_hash(plan_hash)
        plan = stored.reading.plan if stored else None
        phase = plan.phase(phase_id) if plan else None
        return phase.verify if phase else ()

    def guarded(self) -> "checks.Guarded":
        """What governs the agent, as it is now."""
        from kaiza.store import checks  # noqa: PLC0415  only run_checks needs it

        return checks.guarded(self.ground.workspace)

    def check(self, argv: Sequence[str]) -> dict[str, Any]:
        """Run one command and tell what it came to; one whose time was up has no exit status."""
        from kaiza.store import checks  # noqa: PLC0415  only run_checks needs it

        done = checks.run(argv, self.ground.root, self.ground.settings.checks_seconds)
        told: dict[str, Any] = {
            "argv": list(done.argv),
            "duration_ms": done.duration_ms,
            "output": done.output,
            "truncated": done.cut,
        }
        return told if done.exit_code is None else {**told, "exit_code": done.exit_code}

    def meddled(self, before: "checks.Guarded") -> list[str]:
        """What of it was altered since; other processes' records in the log are no alteration."""
        from kaiza.store import checks  # noqa: PLC0415  only run_checks needs it

        return checks.meddled(before, self.ground.workspace)

    def kept(self, digest: str) -> int | None:
        """How large a content is that was replaced; None where it is not kept."""
        return self.ground.objects.length(digest)

    def kept_content(self, digest: str) -> bytes:
        """A content that was replaced, whole."""
        return b"".join(self.ground.objects.chunks(digest))

    @property
    def plans(self) -> Plans:
        """What is in `plans/`."""
        return self.ground.plans

    def open_file(self, path: RelPath) -> OpenFile:
        """A regular file that may be read."""
        return self.ground.workspace.open_file(path, self._judge)

    def open_directory(self, path: RelPath) -> OpenDirectory:
        """A directory that may be listed."""
        return self.ground.workspace.open_directory(path, self._judge)

    def stat(self, path: RelPath) -> FileEntry:
        """What a path leads to, without opening it."""
        return self.ground.workspace.stat(path, lambda _real: None)

    def walk(self, start: RelPath, *, include_ignored: bool, over: Callable[[], bool], since: str = "") -> "scan.Walk":
        """Everything below a directory, in order, without following links; from the path `since` on."""
        from kaiza.store import scan  # noqa: PLC0415  only what walks needs it

        return scan.walk(self.ground.workspace, start, include_ignored=include_ignored, over=over, since=since)

    def unreadable(self, path: RelPath) -> bool:
        """Whether the content of this path is nobody's business."""
        return self.ground.unreadable(path)

    def _judge(self, real: RelPath) -> None:
        if self.ground.unreadable(real):
            raise self.refuse_read(real)
