"""One workspace root and everything Kaiza keeps for it: the files, the record, and the facts the record gives."""

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kaiza.domain import errors
from kaiza.domain.caps import Caps
from kaiza.domain.paths import RelPath, is_control_plane, is_unreadable, parse
from kaiza.domain.plan import Plan
from kaiza.domain.record import GENESIS, Body, Head, Verdict, compose
from kaiza.domain.session import Session
from kaiza.domain.way_back import happened, was_taken_back
from kaiza.store import index, roots, settings, state
from kaiza.store.anchor import Anchor
from kaiza.store.audit_log import AuditLog
from kaiza.store.journal import Journal
from kaiza.store.objects import Objects
from kaiza.store.own import Own
from kaiza.store.plans import Plans
from kaiza.store.records import records
from kaiza.store.reports import Reports
from kaiza.store.state_key import StateKey
from kaiza.store.workspace import Workspace

if TYPE_CHECKING:
    from kaiza.store.commit import Committer
    from kaiza.store.recovery import Announced, Recovery

LOG_NAME = "audit/audit-log.jsonl"
MOST_TOLD = 50
MOST_RECOVERED = 200
"""Intents without a journal that one session looks after; the next one goes on with the rest."""
LARGEST_HASHED = 1 << 30
_RECORDED_BEFORE: Mapping[str, Any] = MappingProxyType(
    {"session_id": None, "plan_id": None, "plan_hash": None, "changes": [], "detail": None}
)
_LONGEST_NAME = 64


class Ground:
    """Made without touching anything on disk; what must exist is made by the first record."""

    def __init__(self, root: str, caps: Caps, told: settings.Settings | None = None) -> None:
        self.root = root
        self.caps = caps
        self.workspace = Workspace(root)
        self.plans = Plans(self.workspace)
        self.reports = Reports(self.workspace)
        self.objects = Objects(Own(self.workspace.fd))
        self._state = state.directory(root)
        self.key = StateKey(self._state, self._unsigned_journals)
        self._journal = Journal(self.objects.own, self.key)
        self._committer: Committer | None = None
        self._building = threading.Lock()
        """Held while the committer is built, so that there is one."""
        self.settings = told or read_settings(self.workspace)
        self._log = f"{root}/{LOG_NAME}"
        self._audit = f"{root}/audit"
        self.facts, head = index.load(self._state, Path(self._log), self.key)
        self.log = AuditLog(
            root,
            follow=self.facts.apply,
            start=head,
            sync_every=self.settings.sync_every,
            lock_seconds=caps.audit_lock_ms / 1000,
        )

    @property
    def committer(self) -> "Committer":
        """What alters the workspace's files, imported and built by the first change or the first one to recover."""
        with self._building:
            if self._committer is None:
                from kaiza.store.commit import Committer  # noqa: PLC0415  a session that only reads needs none of it

                self._committer = Committer(self.workspace, self.objects, self._journal)
            return self._committer

    def ready(self) -> bool:
        """Whether `kaiza init` has been here."""
        return roots.ready(self.root)

    def recording(self) -> bool:
        """Whether calls are recorded: always once a record was known, before that where there is an `audit/`.

        Whatever else is in its place counts too, so that its record fails, and no answer goes out without one.
        """
        return self.log.is_held or self.log.head is not None or os.path.lexists(self._audit)

    def session(self, session_id: str, now: str) -> Session | None:
        """The open session of that id, also one that another process began or ended."""
        self._follow()
        return self.facts.open_session(session_id, now, self.caps.session_idle_hours)

    def damage(self) -> str | None:
        """The verdict that stops changes, if there is one."""
        return self.log.damage()

    def unreadable(self, path: RelPath) -> bool:
        """Whether the content of this path is nobody's business."""
        return is_unreadable(path, self.settings.deny_read, self.settings.allow_read)

    def files_in_scope(self, plan: Plan) -> int:
        """How many files a plan's scope touches now."""
        from kaiza.store.touched import touched  # noqa: PLC0415  see `committer`

        return touched(plan, self.workspace).files

    def recover(self, now: str, request_id: str) -> list[dict[str, Any]]:
        """Bring to an end what dead processes left open, each with a record of its own, and tell what was done.

        Nothing is touched while the record is damaged.
        """
        if not self.recording():
            return []
        self.log.catch_up()
        self.log.whole.begin()
        if self.damage() is not None:
            return []
        self.key.require()
        found = self._recover_journals(now, request_id)
        waiting = {one["request_id"] for one in found}
        try:
            abandoned = (
                (txn, intent)
                for txn, intent in reversed([*self.facts.intents.items()])
                if txn not in waiting and self.committer.is_dead(str((intent["detail"] or {}).get("live", "")))
            )
            for txn, intent in islice(abandoned, MOST_RECOVERED):
                found.append(self._recovered(now, request_id, txn, *self._unstarted(txn, intent)))
        except (OSError, errors.SystemError) as refused:
            found.append(_nothing_recovered(refused))
        return found

    def _recover_journals(self, now: str, request_id: str) -> list[dict[str, Any]]:
        """What became of the journals; one that is not ours, or is none, is told and stops nothing."""
        try:
            if self._journal.is_empty():
                return []
            found = self.committer.recover(self._announced, list(self.facts.intents))
            return [self._tell_recovery(now, request_id, one) for one in found]
        except (OSError, errors.SystemError) as refused:
            return [_nothing_recovered(refused)]

    def _tell_recovery(self, now: str, request_id: str, one: "Recovery") -> dict[str, Any]:
        """A recovery as `begin_session` tells it, after its record."""
        if one.result == "left":
            return _as_told(one.txn, one.result, [], one.left)
        if one.result == "set_aside":
            detail = {"result": one.result, "journal": one.txn, "left": list(one.left), "found_by": request_id}
            self._record(compose("recovery", timestamp=now, workspace_root=self.root, detail=detail))
            return _as_told(one.txn, one.result, [], one.left)
        return self._recovered(now, request_id, one.txn, one.result, [str(path) for path in one.paths], list(one.left))

    def _announced(self, txn: str) -> "Announced | None":
        """What the log says of a change, read to its end; None where it never announced it."""
        from kaiza.store.recovery import Announced  # noqa: PLC0415  see `committer`

        self._follow()
        intent = self.facts.intents.get(txn)
        if intent is not None:
            return Announced(intent["changes"], str((intent["detail"] or {}).get("live", "")), True, False)
        is_made = is_taken_back = False
        for one in records(self.root, reverse=True):
            if one.get("request_id") != txn:
                continue
            if one.get("kind") == "intent":
                live = str((one["detail"] or {}).get("live", ""))
                return Announced(one["changes"], live, False, is_made, is_taken_back)
            is_made = is_made or happened(one)
            is_taken_back = is_taken_back or was_taken_back(one)
        return None

    def _unstarted(self, txn: str, intent: Mapping[str, Any]) -> tuple[str, list[str], list[dict[str, str]]]:
        """An intent without a journal: decided from the hashes that are there."""
        changes = intent["changes"]
        named = [change["path"] for change in changes]
        try:
            touched = [parse(path) for one in changes for path in (one["path"], one["source"]) if path]
        except errors.SystemError:
            return "unknown", named, []
        if any(is_control_plane(path) or self.unreadable(path) for path in touched):
            return "unknown", named, []
        self.committer.sweep(txn, touched)
        states = [self._hash(change["path"]) for change in changes]
        before = [change["before_hash"] if change["source"] is None else None for change in changes]
        result = "unknown"
        if states == [change["after_hash"] for change in changes]:
            result = "applied"
        elif states == before:
            result = "not_applied"
        return result, named, []

    def _hash(self, path: str) -> str | None:
        """The hash of what is there now."""
        try:
            with self.workspace.open_file(parse(path), lambda _real: None) as file:
                return hash_of(file.chunks()) if file.size <= LARGEST_HASHED else None
        except errors.SystemError:
            return None

    def _recovered(
        self, now: str, request_id: str, txn: str, result: str, paths: list[str], left: list[dict[str, str]]
    ) -> dict[str, Any]:
        """Record a recovery. Where an outcome was recorded before, nothing is left to tell of but the tidying up."""
        intent = self.facts.intents.get(txn) or _RECORDED_BEFORE
        self._record(
            compose(
                "recovery",
                timestamp=now,
                request_id=txn,
                session_id=intent["session_id"],
                workspace_root=self.root,
                tool_name=intent.get("tool_name"),
                plan_id=intent["plan_id"],
                plan_hash=intent.get("plan_hash"),
                changes=intent["changes"],
                detail={
                    **_undone(intent),
                    "result": result,
                    "left": left[:MOST_TOLD],
                    "found_by": request_id,
                    "live": self.committer.live_id,
                },
            )
        )
        return _as_told(txn, result, paths, left)

    def _record(self, body: Body) -> None:
        self.log.append(lambda: body, durable=True)

    def unverified(self, seconds: float) -> Mapping[str, int] | None:
        """How far the verification of the whole log has come after so many seconds; None where it has ended."""
        return None if self.damage() is not None else self.log.whole.wait(seconds)

    def keep_index(self, now: str) -> None:
        """Spare the next process from reading the whole log. Without a snapshot it takes longer, and that is all."""
        head = self.log.head
        if head is not None and self._state.is_dir():
            with suppress(OSError):
                self.log.whole.keep()
                _, known = index.load(self._state, Path(self._log), self.key)
                if known is None or known.seq <= head.seq:  # a process that ends late has seen less than others
                    facts = self.facts.without_expired(now, self.caps.session_idle_hours)
                    index.save(self._state, facts, head, self.key)

    def close(self, now: str) -> None:
        """Sync what is written and let go. The index that is left behind tells what others recorded too."""
        with suppress(errors.SystemError):
            self._follow()
        self.log.close()
        self.keep_index(now)
        if self._committer is not None:
            self._committer.close()
        self.objects.own.close()
        self.workspace.close()

    def _unsigned_journals(self) -> Mapping[str, str]:
        """The journals that a version without keys left here; none where that version never anchored this log."""
        return self._journal.hashes() if Anchor(self._state).read() is not None else {}

    def _follow(self) -> None:
        """Read what other processes appended, if anything."""
        head = self.log.head
        try:
            size = os.stat(self._log).st_size  # noqa: PTH116  on every call's path, and a third of the price
        except OSError:
            size = -1
        if (head is None or head.size != size) and self.recording():
            self.log.follow()


def read_settings(workspace: Workspace) -> settings.Settings:
    """The settings of a workspace; without a file, the defaults."""
    return settings.read(workspace.fd)


def _nothing_recovered(refused: Exception) -> dict[str, Any]:
    """What is told where `.kaiza` cannot be used; a session begins all the same."""
    return _as_told("", "left", [], [{"path": ".kaiza", "reason": type(refused).__name__}])


def _as_told(txn: str, result: str, paths: Sequence[str], left: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """A recovery as `begin_session` tells it; a name that came with the workspace is spelled in plain letters."""
    plain = txn.encode("ascii", "backslashreplace").decode()[:_LONGEST_NAME]
    shown = [{key: value.encode("utf-8", "backslashreplace").decode() for key, value in one.items()} for one in left]
    return {"request_id": plain, "result": result, "paths": list(paths[:MOST_TOLD]), "left": shown[:MOST_TOLD]}


def _undone(intent: Mapping[str, Any]) -> dict[str, Any]:
    """The calls that an undo put back, as its intent names them."""
    undone = (intent["detail"] or {}).get("undone")
    return {"undone": undone} if undone else {}


def hash_of(chunks: Iterable[bytes]) -> str:
    """The SHA-256 of a content that comes in chunks."""
    whole = sha256()
    for chunk in chunks:
        whole.update(chunk)
    return whole.hexdigest()


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict as `verify_audit_log` tells it."""
    head = verdict.head or Head(0, GENESIS, 0)
    told: dict[str, Any] = {
        "verdict": verdict.verdict,
        "records": verdict.records,
        "head": {"seq": head.seq, "entry_hash": head.entry_hash},
    }
    if verdict.first_fault is not None:
        told["first_fault"] = {"seq": verdict.first_fault.seq, "why": verdict.first_fault.why}
    return told
