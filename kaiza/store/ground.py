"""One workspace root and everything Kaiza keeps for it: the files, the record, and the facts the record gives."""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from kaiza.domain import errors
from kaiza.domain.caps import Caps
from kaiza.domain.paths import RelPath, is_unreadable, parse
from kaiza.domain.plan import Plan
from kaiza.domain.record import GENESIS, Head, Verdict, compose
from kaiza.domain.session import Session
from kaiza.domain.way_back import happened
from kaiza.store import index, roots, settings, state
from kaiza.store.audit_log import AuditLog
from kaiza.store.commit import Committer
from kaiza.store.journal import Journal
from kaiza.store.objects import Objects
from kaiza.store.own import Own
from kaiza.store.plans import Plans
from kaiza.store.records import records
from kaiza.store.reports import Reports
from kaiza.store.touched import touched
from kaiza.store.workspace import Workspace

LOG_NAME = "audit/audit-log.jsonl"
MOST_TOLD = 50
_SETTINGS = RelPath(("kaiza.toml",))


class Ground:
    """Made without touching anything on disk; what must exist is made by the first record."""

    def __init__(self, root: str, caps: Caps, told: settings.Settings | None = None) -> None:
        self.root = root
        self.caps = caps
        self.workspace = Workspace(root)
        self.plans = Plans(self.workspace)
        self.reports = Reports(self.workspace)
        self.objects = Objects(Own(self.workspace.fd))
        self.committer = Committer(self.workspace, self.objects, Journal(self.objects.own))
        self.settings = told or read_settings(self.workspace)
        self._state = state.directory(root)
        self._log = f"{root}/{LOG_NAME}"
        self._audit = f"{root}/audit"
        self.facts, head = index.load(self._state, Path(self._log))
        self.log = AuditLog(
            root,
            follow=self.facts.apply,
            start=head,
            sync_every=self.settings.sync_every,
            lock_seconds=caps.audit_lock_ms / 1000,
        )

    def ready(self) -> bool:
        """Whether `kaiza init` has been here."""
        return roots.ready(self.root)

    def recording(self) -> bool:
        """Whether there is a place for the record."""
        try:
            return stat.S_ISDIR(os.lstat(self._audit).st_mode)
        except OSError:
            return False

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
        return touched(plan, self.workspace).files

    def recover(self, now: str, request_id: str) -> list[dict[str, Any]]:
        """Bring to an end what dead processes left open, each with a record of its own, and tell what was done.

        Nothing is touched while the record is damaged.
        """
        self._follow()
        if self.damage() is not None:
            return []
        found = [
            self._recovered(now, request_id, one.txn, one.result, [str(path) for path in one.paths], list(one.left))
            for one in self.committer.recover(self._is_dead, self._stands)
        ]
        return found + [
            self._recovered(now, request_id, txn, *self._unstarted(txn, intent))
            for txn, intent in list(self.facts.intents.items())
            if self._is_dead(txn)
        ]

    def _is_dead(self, txn: str) -> bool:
        """Whether nobody alive works on a change; one whose outcome is recorded only has to be tidied up."""
        intent = self.facts.intents.get(txn)
        return intent is None or self.committer.is_dead(str((intent["detail"] or {}).get("live", "")))

    def _stands(self, txn: str) -> bool:
        """Whether the record says that a change was made; it is looked through from its end."""
        told = (one for one in records(self.root, reverse=True) if one["request_id"] == txn and one["kind"] != "intent")
        return txn not in self.facts.intents and happened(next(told, {}))

    def _unstarted(self, txn: str, intent: Mapping[str, Any]) -> tuple[str, list[str], list[dict[str, str]]]:
        """An intent without a journal: decided from the hashes that are there."""
        changes = intent["changes"]
        self.committer.sweep(txn, [parse(path) for one in changes for path in (one["path"], one["source"]) if path])
        states = [self._hash(change["path"]) for change in changes]
        before = [change["before_hash"] if change["source"] is None else None for change in changes]
        result = "unknown"
        if states == [change["after_hash"] for change in changes]:
            result = "applied"
        elif states == before:
            result = "not_applied"
        return result, [change["path"] for change in changes], []

    def _hash(self, path: str) -> str | None:
        """The hash of what is there now."""
        try:
            with self.workspace.open_file(parse(path), lambda _real: None) as file:
                return hash_of(file.chunks())
        except errors.SystemError:
            return None

    def _recovered(
        self, now: str, request_id: str, txn: str, result: str, paths: list[str], left: list[dict[str, str]]
    ) -> dict[str, Any]:
        """The record of a recovery; an outcome that was recorded before the crash needs none."""
        intent = self.facts.intents.get(txn)
        told: dict[str, Any] = {
            "request_id": txn,
            "result": result,
            "paths": paths[:MOST_TOLD],
            "left": left[:MOST_TOLD],
        }
        if intent is None:
            return told
        self.log.append(
            lambda: compose(
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
            ),
            durable=True,
        )
        return told

    def keep_index(self, now: str) -> None:
        """Spare the next process from reading the whole log."""
        head = self.log.head
        if head is not None and self._state.is_dir():
            index.save(self._state, self.facts.without_expired(now, self.caps.session_idle_hours), head)

    def close(self, now: str) -> None:
        """Sync what is written and let go. The index that is left behind tells what others recorded too."""
        with suppress(errors.SystemError):
            self._follow()
        self.log.close()
        self.keep_index(now)
        self.committer.close()
        self.workspace.close()

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
    if not (Path(workspace.root) / "kaiza.toml").exists():
        return settings.Settings()
    with workspace.open_file(_SETTINGS, lambda _real: None) as file:
        return settings.parse(file.read(settings.LARGEST_FILE).decode("utf-8", "replace"))


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
