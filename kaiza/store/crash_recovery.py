"""Recovery of what dead processes left open in a workspace: each change gets a record of its own.

Journals say how far a change came; an intent without a journal is decided from the hashes that are there now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kaiza.domain import errors
from kaiza.domain.audit.inverse_changes import is_rolled_back, took_effect
from kaiza.domain.audit.record import Body, new_body
from kaiza.domain.paths.protected_names import is_control_plane
from kaiza.domain.paths.rel_path import parse
from kaiza.store.audit.reader import read_records
from kaiza.store.workspace import Workspace

if TYPE_CHECKING:
    from kaiza.store.changes.recovery import RecordedIntent, RecoveryResult

MOST_REPORTED = 50
MAX_RECOVERED = 200
"""Intents without a journal that one session looks after; the next session continues with the rest."""
MAX_HASHED_BYTES = 1 << 30
_FINISHED_INTENT: Mapping[str, Any] = MappingProxyType(
    {"session_id": None, "plan_id": None, "plan_hash": None, "changes": [], "detail": None}
)
_MAX_NAME_LENGTH = 64


def recover(ground: Workspace, now: str, request_id: str) -> list[dict[str, Any]]:
    """Finish or take back what dead processes left open; return what was done, as `begin_session` reports it.

    Nothing is touched while the log is damaged.
    """
    if not ground.is_recording():
        return []
    ground.log.catch_up()
    ground.log.background_check.start()
    if ground.damage() is not None:
        return []
    ground.state_key.ensure_exists()
    return _CrashRecovery(ground, now, request_id).run()


@dataclass(frozen=True, slots=True)
class _CrashRecovery:
    """One pass over the journals and the open intents, for the call that asked for it."""

    ground: Workspace
    now: str
    request_id: str

    def run(self) -> list[dict[str, Any]]:
        """Recover the journals first, then the intents of dead processes that have none."""
        found = self._recover_journals()
        waiting = {one["request_id"] for one in found}
        try:
            abandoned = (
                (txn, intent)
                for txn, intent in reversed([*self.ground.audit_state.intents.items()])
                if txn not in waiting
                and self.ground.transactions.is_dead(str((intent["detail"] or {}).get("live", "")))
            )
            for txn, intent in islice(abandoned, MAX_RECOVERED):
                result = self._decide_without_journal(txn, intent)
                found.append(self._record_recovery(txn, result, [change["path"] for change in intent["changes"]], []))
        except (OSError, errors.SystemError) as refused:
            found.append(_report_failure(refused))
        return found

    def _recover_journals(self) -> list[dict[str, Any]]:
        """Recover the journals; one that is not ours, or is none, is reported and stops nothing."""
        try:
            if not self.ground.has_journals():
                return []
            found = self.ground.transactions.recover(self._find_announced, list(self.ground.audit_state.intents))
            return [self._record_journal(one) for one in found]
        except (OSError, errors.SystemError) as refused:
            return [_report_failure(refused)]

    def _record_journal(self, one: "RecoveryResult") -> dict[str, Any]:
        """Record what was done about one journal, and report it."""
        if one.result == "left":
            return _report(one.txn, one.result, [], one.unresolved)
        if one.result == "set_aside":
            detail = {
                "result": one.result,
                "journal": one.txn,
                "left": list(one.unresolved),
                "found_by": self.request_id,
            }
            self._append(new_body("recovery", timestamp=self.now, workspace_root=self.ground.root, detail=detail))
            return _report(one.txn, one.result, [], one.unresolved)
        return self._record_recovery(one.txn, one.result, [str(path) for path in one.paths], list(one.unresolved))

    def _find_announced(self, txn: str) -> "RecordedIntent | None":
        """What the log says of a change, read to its end; None where it never announced it."""
        from kaiza.store.changes.recovery import RecordedIntent  # noqa: PLC0415  most sessions begin without anything to recover

        self.ground.follow()
        intent = self.ground.audit_state.intents.get(txn)
        if intent is not None:
            return RecordedIntent(intent["changes"], str((intent["detail"] or {}).get("live", "")), True, False)
        is_made = is_taken_back = False
        for one in read_records(self.ground.root, reverse=True):
            if one.get("request_id") != txn:
                continue
            if one.get("kind") == "intent":
                live = str((one["detail"] or {}).get("live", ""))
                return RecordedIntent(one["changes"], live, False, is_made, is_taken_back)
            is_made = is_made or took_effect(one)
            is_taken_back = is_taken_back or is_rolled_back(one)
        return None

    def _decide_without_journal(self, txn: str, intent: Mapping[str, Any]) -> str:
        """Compare the hashes an intent names with those that are there; a mixture is `unknown`."""
        changes = intent["changes"]
        try:
            touched = [parse(path) for one in changes for path in (one["path"], one["source"]) if path]
        except errors.SystemError:
            return "unknown"
        if any(is_control_plane(path) or self.ground.is_unreadable(path) for path in touched):
            return "unknown"
        self.ground.transactions.remove_leftovers(txn, touched)
        states = [self._hash_file(change["path"]) for change in changes]
        before = [change["before_hash"] if change["source"] is None else None for change in changes]
        if states == [change["after_hash"] for change in changes]:
            return "applied"
        return "not_applied" if states == before else "unknown"

    def _hash_file(self, path: str) -> str | None:
        """SHA-256 of a file as it is now; None where there is none that can be read, or it is too large."""
        whole = sha256()
        try:
            with self.ground.files.open_file(parse(path), lambda _real: None) as file:
                if file.size > MAX_HASHED_BYTES:
                    return None
                for chunk in file.chunks():
                    whole.update(chunk)
        except errors.SystemError:
            return None
        return whole.hexdigest()

    def _record_recovery(self, txn: str, result: str, paths: list[str], left: list[dict[str, str]]) -> dict[str, Any]:
        """Record a recovery. Where an outcome was recorded before, only the tidying up is left to report."""
        intent = self.ground.audit_state.intents.get(txn) or _FINISHED_INTENT
        self._append(
            new_body(
                "recovery",
                timestamp=self.now,
                request_id=txn,
                session_id=intent["session_id"],
                workspace_root=self.ground.root,
                tool_name=intent.get("tool_name"),
                plan_id=intent["plan_id"],
                plan_hash=intent.get("plan_hash"),
                changes=intent["changes"],
                detail={
                    **_undone_calls(intent),
                    "result": result,
                    "left": left[:MOST_REPORTED],
                    "found_by": self.request_id,
                    "live": self.ground.transactions.liveness_id,
                },
            )
        )
        return _report(txn, result, paths, left)

    def _append(self, body: Body) -> None:
        self.ground.log.append(lambda: body, durable=True)


def _report_failure(refused: Exception) -> dict[str, Any]:
    """What is reported where `.kaiza` cannot be used; a session begins all the same."""
    return _report("", "left", [], [{"path": ".kaiza", "reason": type(refused).__name__}])


def _report(txn: str, result: str, paths: Sequence[str], left: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """A recovery as `begin_session` reports it; names that came with the workspace are escaped to plain letters."""
    plain = txn.encode("ascii", "backslashreplace").decode()[:_MAX_NAME_LENGTH]
    shown = [{key: value.encode("utf-8", "backslashreplace").decode() for key, value in one.items()} for one in left]
    return {"request_id": plain, "result": result, "paths": list(paths[:MOST_REPORTED]), "left": shown[:MOST_REPORTED]}


def _undone_calls(intent: Mapping[str, Any]) -> dict[str, Any]:
    """The calls that an undo put back, as its intent names them."""
    undone = (intent["detail"] or {}).get("undone")
    return {"undone": undone} if undone else {}
