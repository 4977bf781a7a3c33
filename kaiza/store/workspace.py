"""One workspace: its files, plans and settings, put together over its log."""

import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from kaiza.domain import errors
from kaiza.domain.caps import Caps
from kaiza.domain.paths.nested_names import NestedPath
from kaiza.domain.paths.protected_names import find_steering_part, is_control_plane, is_secret
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.approval import NO_EVIDENCE, ApprovalEvidence
from kaiza.domain.plans.parser import StoredPlan
from kaiza.store.bound_log import BoundLog
from kaiza.store.changes.blob_store import BlobStore
from kaiza.store.changes.journal import JournalStore
from kaiza.store.config import roots, trusted_config
from kaiza.store.config.settings import Settings
from kaiza.store.config.settings_layers import SettingsLayers
from kaiza.store.disk import disk_reserve, process_liveness, state_dir
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.disk.process_liveness import ServedSessions
from kaiza.store.documents.nested_workspaces import find_nested_path
from kaiza.store.documents.plan_files import PlanFiles
from kaiza.store.documents.report_files import ReportFiles
from kaiza.store.files.confined_root import ConfinedRoot, is_in_any_repository
from kaiza.store.files.linked_secrets import LinkedSecrets
from kaiza.store.manifest.keeper import ManifestKeeper
from kaiza.store.trust import identity
from kaiza.store.trust.adopted_settings import read_layers
from kaiza.store.trust.binding import Standing
from kaiza.store.trust.git_plans import BOUND
from kaiza.store.trust.plan_evidence import gather_evidence
from kaiza.store.trust.plan_watch import PlanWatch
from kaiza.store.trust.seen_plans import load_draft

DEAD_FILES_PER_STEP = 100
"""Files that one step of cleaning up looks at, in a few milliseconds."""

if TYPE_CHECKING:
    from kaiza.store.changes.transaction import TransactionManager
    from kaiza.store.checks.check_run import CheckedWorkspace
    from kaiza.store.documents.scope_preview import ScopeCounts


class Workspace(BoundLog):
    """Files, plans, audit log and projected state of one root. Opening it writes nothing; the first append does."""

    def __init__(
        self, root: str, caps: Caps, known_settings: Settings | None = None, *, deterministic: bool | None = None
    ) -> None:
        self.files = ConfinedRoot(root)
        super().__init__(root, caps, deterministic=deterministic)
        self.settings_layers = (
            read_layers(root, self.files.fd, self.binding) if known_settings is None else SettingsLayers()
        )
        self.settings = known_settings or self.settings_layers.settings_in_force()
        self.log.sync_every = self.settings.sync_every
        self._linked_secrets = LinkedSecrets(self.files, self.is_unreadable)
        self.plans = PlanFiles(self.files, self._notice_plan)
        self.reports = ReportFiles(self.files)
        self.blobs = BlobStore(KaizaDir(self.files.fd))
        self.journals = JournalStore(self.blobs.kaiza_dir, self.state_key)
        self._transactions: TransactionManager | None = None
        self._build_lock = threading.Lock()  # tool calls run in several threads, and there must be one manager
        self.served_sessions = ServedSessions(self.blobs.kaiza_dir, lambda: not self.binding.is_foreign)
        self.manifest = ManifestKeeper(self.files, self._state_path, self._manifest_identity, self.is_unreadable)
        self._dead_files = process_liveness.remove_dead(self.blobs.kaiza_dir)
        self.plan_watch = PlanWatch(self.look_at_plans, self._remove_dead_files)
        self.is_recovery_due = True
        """Whether it is not known yet what a crash has left; see `store.open_changes`."""
        self.left_open: frozenset[str] = frozenset()
        """Changes that a recovery of this process could not settle."""

    @cached_property
    def scope_counts(self) -> "ScopeCounts":
        """File counts of plans that are sealed."""
        # A session that seals no plan does not pay for the import.
        from kaiza.store.documents.scope_preview import ScopeCounts  # noqa: PLC0415

        return ScopeCounts(self.files)

    @property
    def transactions(self) -> "TransactionManager":
        """Transaction manager for the workspace's files, built on first use."""
        with self._build_lock:
            if self._transactions is None:
                # A session that only reads does not pay for the import.
                from kaiza.store.changes.transaction import TransactionManager  # noqa: PLC0415

                self._transactions = TransactionManager(self.files, self.blobs, self.journals)
            return self._transactions

    def is_dead(self, live_id: str) -> bool:
        """Whether the process with this liveness id has ended, and is not this one."""
        manager = self._transactions
        return process_liveness.is_dead(self.blobs.kaiza_dir, live_id) if manager is None else manager.is_dead(live_id)

    def is_initialized(self) -> bool:
        """Whether `kaiza init` has run here."""
        return roots.is_initialized(self.root)

    def is_unreadable(self, path: RelPath) -> bool:
        """Whether no tool may read this path: secrets, repositories, and what `deny_read` adds."""
        return self._is_secret(path) or self.is_in_repository(path)

    def is_in_repository(self, path: RelPath) -> bool:
        """Whether the path is version control's own, and no setting exempts it."""
        return is_in_any_repository(self.files, path) and str(path) not in self.settings.allow_read

    def is_linked_secret(self, path: RelPath, status: os.stat_result) -> bool:
        """Whether the file at a readable path has another name that no tool may read."""
        return self._linked_secrets.has_secret_name(status) and str(path) not in self.settings.allow_read

    def _is_secret(self, path: RelPath) -> bool:
        return is_secret(path, self.settings.deny_read, self.settings.allow_read)

    def checked(self) -> "CheckedWorkspace":
        """The workspace as its checks see it."""
        from kaiza.store.checks.check_run import CheckedWorkspace  # noqa: PLC0415  needed by run_checks only
        from kaiza.store.checks.sandbox import SandboxRules  # noqa: PLC0415  as above

        user_directory = trusted_config.user_directory()
        hidden = (str(state_dir.shared_path()), str(user_directory))
        return CheckedWorkspace(
            root=self.root,
            kaiza_dir=self.blobs.kaiza_dir,
            private_directories=(self._state_path, user_directory),
            is_governing=lambda path: (
                is_control_plane(path) or find_steering_part(path) is not None or bool(self.nested_paths([path]))
            ),
            is_unreadable=self._is_secret,
            seconds=self.settings.checks_seconds,
            rules=SandboxRules(hidden, self.settings.checks_network, self.settings.checks_writable),
        )

    def nested_paths(self, paths: Iterable[RelPath]) -> Sequence[NestedPath]:
        """Those of the paths that control a workspace below the root, or make one whatever is written to them."""
        found = (find_nested_path(self.files, path) for path in paths)
        return tuple(nested for nested in found if nested is not None)

    def plan_evidence(self, stored: StoredPlan) -> ApprovalEvidence:
        """Evidence for a plan's approval outside the log. May start git and ssh-keygen."""
        if self.binding.is_foreign:
            return NO_EVIDENCE
        return gather_evidence(self.root, self._state_path, stored, self.seen_plans)

    def refresh_evidence(self, stored: StoredPlan, known: ApprovalEvidence) -> ApprovalEvidence:
        """The evidence, with what was seen here since. Starts no process, for use under the log's lock."""
        return known if self.binding.is_foreign else self.seen_plans.recall(stored, known)

    def load_seen_draft(self, plan_id: str) -> bytes | None:
        """The text of a plan's draft that was seen here last; None if there is none."""
        return load_draft(self._state_path, plan_id)

    def look_at_plans(self) -> None:
        """Read the plans that changed, and save what was seen of them."""
        try:
            self.plans.read_changed()
            self.seen_plans.flush()
        except (OSError, errors.SystemError):
            return  # the watch looks again in a second, and a call that reads the plans is told why it cannot

    def _mark_plans_brought(self) -> None:
        """Let no edit count of the plans that are here as approved while the workspace is bound."""
        plans = list(self.plans.read_all())  # drafts count as seen from now on
        self.seen_plans.flush()
        self.seen_plans.mark_brought(plans, BOUND)

    def _notice_plan(self, stored: StoredPlan) -> None:
        if not self.binding.is_foreign:
            self.seen_plans.notice(stored)

    def has_journals(self) -> bool:
        """Whether there is a journal of an unfinished change, including one that another process is making."""
        return not self.binding.is_foreign and self.journals.count() > 0

    def count_journals(self) -> int:
        """Number of journals that there are, also of those that came with the workspace. OSError if unreadable."""
        return self.journals.count()

    def free_bytes(self) -> int:
        """Free space of the file system that the root is on."""
        return disk_reserve.free_bytes(self.files.fd)

    def _remove_dead_files(self) -> None:
        """Remove some of what ended processes left in `.kaiza/live`; nothing once all of it has been looked at."""
        if not self.binding.is_foreign:
            with suppress(OSError):  # then the next process continues
                for _ in islice(self._dead_files, DEAD_FILES_PER_STEP):
                    pass

    def close(self, now: str) -> None:
        """Sync the log, save a snapshot and close all descriptors."""
        self.plan_watch.stop()
        if "scope_counts" in vars(self):
            self.scope_counts.stop()
        self.manifest.stop()
        self.seen_plans.flush()
        self.close_log(now)
        self.served_sessions.close()
        if self._transactions is not None:
            self._transactions.close()
        self.blobs.kaiza_dir.close()
        self.files.close()

    def _manifest_identity(self) -> str | None:
        """Proof that a manifest is of this workspace and this machine; None unless the workspace is bound."""
        known = identity.read_known(self._state_path) if self.binding.standing is Standing.BOUND else None
        if known is None or known.workspace_id is None:
            return None
        return self.state_key.compute_code("manifest", known.workspace_id.encode(), os.fsencode(self.root))
