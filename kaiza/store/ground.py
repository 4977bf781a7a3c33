"""One workspace root and everything Kaiza keeps for it: the files, the record, and the facts the record gives."""

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaiza.domain import errors
from kaiza.domain.caps import Caps
from kaiza.domain.paths import RelPath
from kaiza.domain.plan import Plan
from kaiza.domain.protected_names import is_unreadable
from kaiza.domain.record import GENESIS, Head, Verdict
from kaiza.domain.record_folding import apply_record
from kaiza.domain.session import Session
from kaiza.store import index, roots, settings, state
from kaiza.store.anchor import Anchor
from kaiza.store.audit_log import AuditLog
from kaiza.store.journal import Journal
from kaiza.store.objects import Objects
from kaiza.store.own import Own
from kaiza.store.plans import Plans
from kaiza.store.reports import Reports
from kaiza.store.state_key import StateKey
from kaiza.store.workspace import Workspace

if TYPE_CHECKING:
    from kaiza.store.commit import Committer

LOG_NAME = "audit/audit-log.jsonl"


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
            follow=partial(apply_record, self.facts),
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
        self.follow()
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

    def has_journals(self) -> bool:
        """Whether a change left a journal, that of a living process included."""
        return not self._journal.is_empty()

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
            self.follow()
        self.log.close()
        self.keep_index(now)
        if self._committer is not None:
            self._committer.close()
        self.objects.own.close()
        self.workspace.close()

    def _unsigned_journals(self) -> Mapping[str, str]:
        """The journals that a version without keys left here; none where that version never anchored this log."""
        return self._journal.hashes() if Anchor(self._state).read() is not None else {}

    def follow(self) -> None:
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
