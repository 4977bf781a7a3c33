"""One workspace root and everything Kaiza keeps for it: the files, the record, and the facts the record gives."""

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaiza.domain import errors
from kaiza.domain.audit.projection import Session
from kaiza.domain.audit.record import GENESIS, LogHead, Verdict
from kaiza.domain.audit.record_folding import apply_record
from kaiza.domain.caps import Caps
from kaiza.domain.paths.protected_names import is_unreadable
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.plan import Plan
from kaiza.store.audit import snapshot
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.log import AuditLog
from kaiza.store.changes.blob_store import BlobStore
from kaiza.store.changes.journal import JournalStore
from kaiza.store.config import roots, settings
from kaiza.store.disk import state_dir
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.disk.state_key import StateKey
from kaiza.store.documents.plan_files import PlanFiles
from kaiza.store.documents.report_files import ReportFiles
from kaiza.store.files.confined_root import ConfinedRoot

if TYPE_CHECKING:
    from kaiza.store.changes.transaction import TransactionManager

LOG_PATH = "audit/audit-log.jsonl"


class Workspace:
    """Made without touching anything on disk; what must exist is made by the first record."""

    def __init__(self, root: str, caps: Caps, told: settings.Settings | None = None) -> None:
        self.root = root
        self.caps = caps
        self.files = ConfinedRoot(root)
        self.plans = PlanFiles(self.files)
        self.reports = ReportFiles(self.files)
        self.blobs = BlobStore(KaizaDir(self.files.fd))
        self._state_path = state_dir.path_of(root)
        self.state_key = StateKey(self._state_path, self._unsigned_journals)
        self._journal = JournalStore(self.blobs.kaiza_dir, self.state_key)
        self._committer: TransactionManager | None = None
        self._building = threading.Lock()
        """Held while the committer is built, so that there is one."""
        self.settings = told or read_settings(self.files)
        self._log_path = f"{root}/{LOG_PATH}"
        self._audit_path = f"{root}/audit"
        self.audit_state, head = snapshot.load(self._state_path, Path(self._log_path), self.state_key)
        self.log = AuditLog(
            root,
            follow=partial(apply_record, self.audit_state),
            start=head,
            sync_every=self.settings.sync_every,
            lock_seconds=caps.audit_lock_ms / 1000,
        )

    @property
    def transactions(self) -> "TransactionManager":
        """What alters the workspace's files, imported and built by the first change or the first one to recover."""
        with self._building:
            if self._committer is None:
                from kaiza.store.changes.transaction import TransactionManager  # noqa: PLC0415  a session that only reads needs none of it

                self._committer = TransactionManager(self.files, self.blobs, self._journal)
            return self._committer

    def is_initialized(self) -> bool:
        """Whether `kaiza init` has been here."""
        return roots.is_initialized(self.root)

    def is_recording(self) -> bool:
        """Whether calls are recorded: always once a record was known, before that where there is an `audit/`.

        Whatever else is in its place counts too, so that its record fails, and no answer goes out without one.
        """
        return self.log.has_been_opened or self.log.head is not None or os.path.lexists(self._audit_path)

    def find_session(self, session_id: str, now: str) -> Session | None:
        """The open session of that id, also one that another process began or ended."""
        self.follow()
        return self.audit_state.find_open_session(session_id, now, self.caps.session_idle_hours)

    def damage(self) -> str | None:
        """The verdict that stops changes, if there is one."""
        return self.log.damage()

    def is_unreadable(self, path: RelPath) -> bool:
        """Whether the content of this path is nobody's business."""
        return is_unreadable(path, self.settings.deny_read, self.settings.allow_read)

    def count_in_scope(self, plan: Plan) -> int:
        """How many files a plan's scope touches now."""
        from kaiza.store.documents.scope_preview import match_files  # noqa: PLC0415  see `committer`

        return match_files(plan, self.files).file_count

    def has_journals(self) -> bool:
        """Whether a change left a journal, that of a living process included."""
        return not self._journal.is_empty()

    def verification_progress(self, seconds: float) -> Mapping[str, int] | None:
        """How far the verification of the whole log has come after so many seconds; None where it has ended."""
        return None if self.damage() is not None else self.log.background_check.wait(seconds)

    def save_snapshot(self, now: str) -> None:
        """Spare the next process from reading the whole log. Without a snapshot it takes longer, and that is all."""
        head = self.log.head
        if head is not None and self._state_path.is_dir():
            with suppress(OSError):
                self.log.background_check.save_stamp()
                _, known = snapshot.load(self._state_path, Path(self._log_path), self.state_key)
                if known is None or known.seq <= head.seq:  # a process that ends late has seen less than others
                    facts = self.audit_state.without_expired(now, self.caps.session_idle_hours)
                    snapshot.save(self._state_path, facts, head, self.state_key)

    def close(self, now: str) -> None:
        """Sync what is written and let go. The index that is left behind tells what others recorded too."""
        with suppress(errors.SystemError):
            self.follow()
        self.log.close()
        self.save_snapshot(now)
        if self._committer is not None:
            self._committer.close()
        self.blobs.kaiza_dir.close()
        self.files.close()

    def _unsigned_journals(self) -> Mapping[str, str]:
        """The journals that a version without keys left here; none where that version never anchored this log."""
        return self._journal.journal_hashes() if Checkpoint(self._state_path).read() is not None else {}

    def follow(self) -> None:
        """Read what other processes appended, if anything."""
        head = self.log.head
        try:
            size = os.stat(self._log_path).st_size  # noqa: PTH116  on every call's path, and a third of the price
        except OSError:
            size = -1
        if (head is None or head.size != size) and self.is_recording():
            self.log.follow()


def read_settings(workspace: ConfinedRoot) -> settings.Settings:
    """The settings of a workspace; without a file, the defaults."""
    return settings.read(workspace.fd)


def verdict_output(verdict: Verdict) -> dict[str, Any]:
    """A verdict as `verify_audit_log` tells it."""
    head = verdict.head or LogHead(0, GENESIS, 0)
    told: dict[str, Any] = {
        "verdict": verdict.verdict,
        "records": verdict.records,
        "head": {"seq": head.seq, "entry_hash": head.entry_hash},
    }
    if verdict.first_fault is not None:
        told["first_fault"] = {"seq": verdict.first_fault.seq, "why": verdict.first_fault.why}
    return told
