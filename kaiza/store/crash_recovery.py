"""Crash recovery of a workspace at its first use and when a session begins; each recovered change gets a record.

Journals are recovered first, in `store.changes.recovery`. An open intent whose journal is missing, because the power
took it or the change never began, is decided here by comparing the files with the hashes in the intent.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from kaiza.domain import errors
from kaiza.domain.audit.inverse_changes import is_rolled_back, took_effect
from kaiza.domain.audit.record import Body, Record, is_well_formed, new_body
from kaiza.store.audit.reader import read_records
from kaiza.store.open_changes import (
    FileState,
    comparable_paths,
    compare_files,
    find_abandoned,
    has_abandoned,
    hold_lock,
    is_recovery_due,
    writer_of,
)
from kaiza.store.workspace import Workspace

if TYPE_CHECKING:
    from kaiza.store.changes.journal import ForeignJournal
    from kaiza.store.changes.recovery import RecordedIntent, RecoveryResult

MAX_REPORTED = 50
# A log that came with a clone may have any number of open intents; the next session continues with the rest.
MAX_RECOVERED = 200
_FINISHED_INTENT = Record({"session_id": None, "plan_id": None, "plan_hash": None, "changes": [], "detail": None})
_MAX_NAME_LENGTH = 64
MAX_VERIFICATION_WAIT = 10.0
"""Seconds that a recovery waits for the verification of the log; then the next session recovers."""


def recover(workspace: Workspace, now: str, request_id: str) -> list[dict[str, Any]] | None:
    """Complete or roll back what dead processes left; returns `begin_session.recovered`.

    None while the log is being read, because its open changes are not known yet; the first change after that recovers.

    Does nothing where the log is damaged: whether a journal belongs to a recorded intent cannot be trusted then. Nor in
    a workspace that came from elsewhere, whose journals are not ours.
    """
    if not workspace.is_recording():
        return []
    workspace.begin_recording()
    workspace.log.catch_up()
    # Started before anything is changed: on a short log it has the verdict by now.
    workspace.projection.start_verification()
    if workspace.damage() is not None or workspace.binding.is_foreign:
        return []
    if workspace.audit_state.is_partial:
        workspace.is_recovery_due = True
        return None
    return _CrashRecovery(workspace, now, request_id).run()


def recover_if_due(workspace: Workspace, now: str, request_id: str, seconds: float) -> None:
    """Recover before a call, if that is due. Waits at most `seconds` for the verification of the log it rests on.

    While that lasts nothing is recovered, and the next call tries again.
    """
    if workspace.binding.is_foreign or not is_recovery_due(workspace):
        return
    # In a damaged log nothing can be told. Without a wait for it, a read would stand in line behind a long log.
    if workspace.damage() is None and workspace.verification_progress(seconds) is None:
        recover(workspace, now, request_id)


@dataclass(frozen=True, slots=True)
class ForeignChange:
    """Interrupted change of another state directory: its locked journal, and what the log says of it."""

    journal: "ForeignJournal"
    intent: Record | None
    """The record of its intent; None where the log has none."""
    is_open: bool
    """Whether neither an outcome nor a recovery of it is recorded."""
    is_in_use: bool
    """Whether its writer may be alive; then it must not be settled."""
    states: Sequence[FileState]
    """How the files are now, one for each change of the intent; empty where a path is protected."""


def find_foreign_changes(workspace: Workspace) -> Iterator[ForeignChange]:
    """Yield the changes whose journals belong to other state directories, each locked until the next is asked for."""
    listed = workspace.journals.list_foreign()
    intents = _find_intents(workspace.root, {journal.name for journal in listed})
    for journal in listed:
        intent, is_open = intents.get(journal.name, (None, False))
        claimed = workspace.journals.claim(journal.name)
        try:
            writers = {journal.liveness_id, writer_of(intent) if intent is not None else ""}
            is_claimed = claimed is not None and claimed.origin == "foreign"
            is_in_use = not is_claimed or not all(map(workspace.transactions.is_dead, writers))
            states = compare_files(workspace, intent.changes) if intent is not None else []
            yield ForeignChange(journal, intent, is_open, is_in_use, states)
        finally:
            if claimed is not None and claimed.journal is not None:
                claimed.journal.close()


def settle_foreign_change(workspace: Workspace, change: ForeignChange, now: str, person: str) -> dict[str, Any]:
    """Set a journal aside, decide its change by the hashes in the log, and record that this person did so.

    Nothing is done on the journal's word.
    """
    return _CrashRecovery(workspace, now, "kaiza doctor").settle(change, person)


@dataclass(frozen=True, slots=True)
class _CrashRecovery:
    """One recovery, on behalf of the call `request_id`."""

    workspace: Workspace
    now: str
    request_id: str

    def run(self) -> list[dict[str, Any]]:
        if not has_abandoned(self.workspace):
            self.workspace.is_recovery_due = False
            return []
        try:
            # An old record edited while no server ran could announce a forged change: nothing is moved on its word.
            is_verified = self.workspace.verification_progress(MAX_VERIFICATION_WAIT) is None
            if not is_verified or self.workspace.damage() is not None:
                self.workspace.is_recovery_due = True
                return [_report("", "left", [], [{"path": "audit", "reason": "not_verified_yet"}])]
            with hold_lock(self.workspace.root):
                self.workspace.follow()  # another process may have recovered all of it meanwhile
                reports = self._recover_all()
        except (OSError, errors.SystemError) as refused:
            reports = [_report_failure(refused)]
        self.workspace.is_recovery_due = False
        self.workspace.left_open = frozenset(find_abandoned(self.workspace))
        return reports

    def _recover_all(self) -> list[dict[str, Any]]:
        reports: list[dict[str, Any]] = []
        try:
            if self.workspace.has_journals():
                intents = list(self.workspace.audit_state.intents)
                results = self.workspace.transactions.recover(self._find_intent, intents)
                reports += [self._record_journal(result) for result in results]
        except (OSError, errors.SystemError) as refused:
            reports = [_report_failure(refused)]
        has_journal = {report["request_id"] for report in reports}
        try:
            # The newest first: intents that came with a clone do not delay the recovery of our own.
            abandoned = (
                (txn, intent)
                for txn, intent in reversed(find_abandoned(self.workspace).items())
                if txn not in has_journal and not self.workspace.journals.has_pending(txn)
            )
            for txn, intent in islice(abandoned, MAX_RECOVERED):
                result = self._decide_without_journal(txn, intent)
                reports.append(self._record_recovery(txn, result, [change["path"] for change in intent.changes], []))
        except (OSError, errors.SystemError) as refused:
            reports.append(_report_failure(refused))
        return reports

    def _record_journal(self, recovered: "RecoveryResult") -> dict[str, Any]:
        """Record what was done about one journal, and report it."""
        if recovered.result == "left":
            return _report(recovered.txn, recovered.result, [], recovered.unresolved)
        if recovered.result == "set_aside":
            detail = {
                "result": recovered.result,
                "journal": recovered.txn,
                "left": list(recovered.unresolved),
                "found_by": self.request_id,
            }
            self._append(new_body("recovery", timestamp=self.now, workspace_root=self.workspace.root, detail=detail))
            return _report(recovered.txn, recovered.result, [], recovered.unresolved)
        paths = [str(path) for path in recovered.paths]
        return self._record_recovery(recovered.txn, recovered.result, paths, list(recovered.unresolved))

    def _find_intent(self, txn: str) -> "RecordedIntent | None":
        """What the log, read to its end, says of a transaction; None where it has no intent of it."""
        from kaiza.store.changes.recovery import RecordedIntent  # noqa: PLC0415  most sessions have nothing to recover

        self.workspace.follow()
        intent = self.workspace.audit_state.intents.get(txn)
        if intent is not None:
            return RecordedIntent(intent.changes, writer_of(intent), True, False)
        # Not open: its outcome or recovery is recorded. From the end, these come before the intent itself.
        was_applied = was_rolled_back = False
        for record in read_records(self.workspace.root, reverse=True):
            if record.request_id != txn:
                continue
            if record.kind == "intent" and is_well_formed(record):
                return RecordedIntent(record.changes, writer_of(record), False, was_applied, was_rolled_back)
            was_applied = was_applied or took_effect(record)
            was_rolled_back = was_rolled_back or is_rolled_back(record)
        return None

    def _decide_without_journal(self, txn: str, intent: Record) -> str:
        """Compare the files with the hashes of an intent: all new, all old, or `unknown`."""
        touched = comparable_paths(self.workspace, intent.changes)
        if touched is None:
            return "unknown"
        self.workspace.transactions.remove_leftovers(txn, touched)
        states = compare_files(self.workspace, intent.changes)
        if all(state in ("after", "both") for state in states):
            return "applied"
        return "not_applied" if all(state in ("before", "both") for state in states) else "unknown"

    def settle(self, change: ForeignChange, person: str) -> dict[str, Any]:
        """Set the journal aside and record what became of its change; `left` where it cannot be set aside."""
        txn, intent = change.journal.name, change.intent
        moved_to = self.workspace.journals.set_aside(txn)
        if moved_to is None:
            return _report(txn, "left", [], [{"path": f".kaiza/journal/{txn}", "reason": "foreign"}])
        result, members = "set_aside", dict[str, Any]()
        if intent is not None and change.is_open:
            result, members = self._decide_without_journal(txn, intent), self._members_of(txn, intent)
        elif intent is not None:
            self.workspace.transactions.remove_leftovers(txn, comparable_paths(self.workspace, intent.changes) or ())
        left = [{"path": moved_to, "reason": "foreign"}]
        detail = {"result": result, "journal": txn, "left": left, "found_by": self.request_id, "person": person}
        detail |= members.pop("detail", {})
        members |= {"timestamp": self.now, "workspace_root": self.workspace.root}
        self._append(new_body("recovery", detail=detail, **members))
        return _report(txn, result, [each["path"] for each in members.get("changes", ())], left)

    def _members_of(self, txn: str, intent: Record) -> dict[str, Any]:
        """Members of the record that closes an intent."""
        members = {"request_id": txn, "tool_name": intent.tool_name, "changes": intent.changes}
        # An intent from before an adoption counts for no session or plan here: only a person may undo its changes.
        if txn not in self.workspace.audit_state.intents:
            return members
        followed = {name: intent.members[name] for name in ("session_id", "plan_id", "plan_hash")}
        return {**members, **followed, "detail": _undone_calls(intent)}

    def _record_recovery(self, txn: str, result: str, paths: list[str], left: list[dict[str, str]]) -> dict[str, Any]:
        """Record and report a recovery. Where the outcome is recorded already, the record lists no changes again."""
        intent = self.workspace.audit_state.intents.get(txn) or _FINISHED_INTENT
        self._append(
            new_body(
                "recovery",
                timestamp=self.now,
                request_id=txn,
                session_id=intent.session_id,
                workspace_root=self.workspace.root,
                tool_name=intent.tool_name,
                plan_id=intent.plan_id,
                plan_hash=intent.plan_hash,
                changes=intent.changes,
                detail={
                    **_undone_calls(intent),
                    "result": result,
                    "left": left[:MAX_REPORTED],
                    "found_by": self.request_id,
                    "live": self.workspace.transactions.liveness_id,
                },
            )
        )
        return _report(txn, result, paths, left)

    def _append(self, body: Body) -> None:
        self.workspace.log.append(lambda: body, durable=True)


def _find_intents(root: str, txns: set[str]) -> dict[str, tuple[Record, bool]]:
    """The intents of these transactions in the log, each with whether it is open."""
    found: dict[str, tuple[Record, bool]] = {}
    closed: set[str] = set()
    # From the end, an outcome or a recovery comes before its intent.
    for record in read_records(root, reverse=True) if txns else ():
        txn = record.request_id
        if txn not in txns or txn in found:
            continue
        if record.kind == "intent" and is_well_formed(record) and record.members["changes"] is not None:
            found[txn] = (record, txn not in closed)
        closed.add(txn)
    return found


def _report_failure(refused: Exception) -> dict[str, Any]:
    """The report where `.kaiza` cannot be used. The session begins nevertheless."""
    return _report("", "left", [], [{"path": ".kaiza", "reason": type(refused).__name__}])


def _report(txn: str, result: str, paths: Sequence[str], left: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    # Names that came with the workspace may be any bytes: they are escaped and cut before an agent reads them.
    plain = txn.encode("ascii", "backslashreplace").decode()[:_MAX_NAME_LENGTH]
    shown = [{key: value.encode("utf-8", "backslashreplace").decode() for key, value in each.items()} for each in left]
    return {"request_id": plain, "result": result, "paths": list(paths[:MAX_REPORTED]), "left": shown[:MAX_REPORTED]}


def _undone_calls(intent: Record) -> dict[str, Any]:
    """The calls that an undo restores, as its intent names them."""
    undone = intent.detail.get("undone")
    return {"undone": undone} if undone else {}
