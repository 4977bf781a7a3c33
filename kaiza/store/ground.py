"""One workspace root and everything Kaiza keeps for it: the files, the record, and the facts the record gives."""

import os
import stat
import threading
from pathlib import Path
from typing import Any

from kaiza.domain.caps import Caps
from kaiza.domain.paths import RelPath, is_unreadable
from kaiza.domain.record import Verdict
from kaiza.domain.session import Session
from kaiza.store import index, roots, settings, state
from kaiza.store.audit_log import AuditLog
from kaiza.store.plans import Plans
from kaiza.store.workspace import Workspace

LOG_NAME = "audit/audit-log.jsonl"
_SETTINGS = RelPath(("kaiza.toml",))


class Ground:
    """Made without touching anything on disk; what must exist is made by the first record."""

    def __init__(self, root: str, caps: Caps) -> None:
        self.root = root
        self.caps = caps
        self.workspace = Workspace(root)
        self.plans = Plans(self.workspace)
        self.settings = read_settings(self.workspace)
        self.turn = threading.Lock()
        """Changes take turns; held from the look at a file to the outcome of its change."""
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

    def keep_index(self, now: str) -> None:
        """Spare the next process from reading the whole log."""
        head = self.log.head
        if head is not None and self._state.is_dir():
            index.save(self._state, self.facts.without_expired(now, self.caps.session_idle_hours), head)

    def close(self, now: str) -> None:
        """Sync what is written and let go."""
        self.log.close()
        self.keep_index(now)
        self.workspace.close()

    def _follow(self) -> None:
        """Read what other processes appended, if anything."""
        head = self.log.head
        try:
            size = os.stat(self._log).st_size  # noqa: PTH116  on every call's path, and a third of the price
        except OSError:
            size = -1
        if (head is None or head.size != size) and self.recording():
            self.log.catch_up()


def read_settings(workspace: Workspace) -> settings.Settings:
    """The settings of a workspace; without a file, the defaults."""
    if not (Path(workspace.root) / "kaiza.toml").exists():
        return settings.Settings()
    with workspace.open_file(_SETTINGS, lambda _real: None) as file:
        return settings.parse(file.read(settings.LARGEST_FILE).decode("utf-8", "replace"))


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict as `verify_audit_log` tells it."""
    told: dict[str, Any] = {"verdict": verdict.verdict, "records": verdict.records}
    if verdict.head is not None:
        told["head"] = {"seq": verdict.head.seq, "entry_hash": verdict.head.entry_hash}
    if verdict.first_fault is not None:
        told["first_fault"] = {"seq": verdict.first_fault.seq, "why": verdict.first_fault.why}
    return told
