"""One workspace: its files, its audit log, and the state projected from the log."""

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from kaiza.domain import errors
from kaiza.domain.audit.projection import AuditState, Session
from kaiza.domain.audit.record import Body
from kaiza.domain.caps import Caps
from kaiza.domain.paths.nested_names import NestedPath
from kaiza.domain.paths.protected_names import LOG_DIRECTORY, LOG_PATH, find_steering_part, is_control_plane, is_secret
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.approval import NO_EVIDENCE, ApprovalEvidence
from kaiza.domain.plans.parser import StoredPlan
from kaiza.store.audit.determinism import prepare_record
from kaiza.store.audit.log_projection import LogProjection
from kaiza.store.changes.blob_store import BlobStore
from kaiza.store.changes.housekeeping import Housekeeping
from kaiza.store.changes.journal import JournalStore
from kaiza.store.config import roots, trusted_config
from kaiza.store.config.settings import Settings
from kaiza.store.config.settings_layers import SettingsLayers
from kaiza.store.disk import disk_reserve, process_liveness, state_dir
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.disk.served_sessions import ServedSessions
from kaiza.store.disk.state_key import StateKey
from kaiza.store.documents.nested_workspaces import find_nested_path
from kaiza.store.documents.plan_files import PlanFiles
from kaiza.store.documents.report_files import ReportFiles
from kaiza.store.documents.scope_count import ScopeCounts
from kaiza.store.files.bare_repositories import is_in_any_repository
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.files.linked_secrets import LinkedSecrets
from kaiza.store.manifest.keeper import ManifestKeeper
from kaiza.store.trust import binding, identity
from kaiza.store.trust.adopted_settings import read_layers
from kaiza.store.trust.binding import Standing, read_binding
from kaiza.store.trust.git_plans import BOUND
from kaiza.store.trust.plan_evidence import gather_evidence
from kaiza.store.trust.plan_watch import PlanWatch
from kaiza.store.trust.seen_plans import SeenPlans, load_draft

if TYPE_CHECKING:
    from kaiza.store.changes.transaction import TransactionManager
    from kaiza.store.checks.check_run import CheckedWorkspace


class Workspace:
    """Files, plans, audit log and projected state of one root. Opening it writes nothing; the first append does."""

    def __init__(
        self, root: str, caps: Caps, known_settings: Settings | None = None, *, deterministic: bool | None = None
    ) -> None:
        self.root = root
        self.caps = caps
        self.files = ConfinedRoot(root)
        self._linked_secrets = LinkedSecrets(self.files, self.is_unreadable)
        self.plans = PlanFiles(self.files, self._notice_plan)
        self.reports = ReportFiles(self.files)
        self.scope_counts = ScopeCounts(self.files)
        self.blobs = BlobStore(KaizaDir(self.files.fd))
        self._state_path = state_dir.path_of(root)
        self.binding = read_binding(root, self._state_path)
        self._binding_lock = threading.RLock()  # protects `binding`, `_has_begun` and what is projected with them
        self._has_begun = False
        self.notice: str | None = None
        """Sentence about what `begin_recording` did, for the agent or person whose call it was."""
        self.seen_plans = SeenPlans(root, self._state_path, self._has_approval)
        self.state_key = StateKey(self._state_path)
        self.journals = JournalStore(self.blobs.kaiza_dir, self.state_key)
        tidying = Housekeeping(self.blobs.kaiza_dir, lambda: not self.binding.is_foreign)
        self.plan_watch = PlanWatch(self.look_at_plans, tidying.step)
        self.manifest = ManifestKeeper(self.files, self._state_path, self._manifest_identity, self.is_unreadable)
        self._transactions: TransactionManager | None = None
        self.served_sessions = ServedSessions(self.blobs.kaiza_dir, lambda: not self.binding.is_foreign)
        self._build_lock = threading.Lock()  # tool calls run in several threads, and there must be one manager
        self.settings_layers = (
            read_layers(root, self.files.fd, self.binding) if known_settings is None else SettingsLayers()
        )
        self.settings = known_settings or self.settings_layers.settings_in_force()
        self._log_path = f"{root}/{LOG_PATH}"
        self._audit_path = f"{root}/{LOG_DIRECTORY}"
        self.projection = self._make_projection(deterministic)
        self.log = self.projection.log
        self.is_recovery_due = True
        """Whether it is not known yet what a crash has left; see `store.open_changes`."""
        self.left_open: frozenset[str] = frozenset()
        """Changes that a recovery of this process could not settle."""

    def _make_projection(self, deterministic: bool | None) -> LogProjection:  # noqa: FBT001  as in the constructor
        return LogProjection(
            self.root,
            self._state_path,
            self.state_key,
            self.binding.restricted_seq,
            known=self._load_retired_restrictions(),
            stamp=lambda body, seq: prepare_record(body, seq, wanted=deterministic, state=self.audit_state),
            sync_every=self.settings.sync_every,
            lock_seconds=self.caps.audit_lock_ms / 1000,
        )

    def _load_retired_restrictions(self) -> AuditState | None:
        """What an earlier workspace at this path forbids: in force before the first record carries it over, too."""
        if not self.binding.is_new or not self._state_path.is_dir():
            return None
        from kaiza.store.trust import retired_state  # noqa: PLC0415  most workspaces are not new

        return retired_state.load_restrictions(self._state_path, self.state_key)

    @property
    def audit_state(self) -> AuditState:
        """State projected from the log; partial while a long log is being read."""
        return self.projection.state

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

    def is_recording(self) -> bool:
        """Whether calls are recorded: if there is an `audit/`, or ever was a record."""
        # lexists: a file or a dangling link named `audit` must make the append fail, not turn recording off.
        return self.log.has_been_opened or self.log.head is not None or os.path.lexists(self._audit_path)

    def find_session(self, session_id: str, now: str) -> Session | None:
        """The open session with this id, including one that another process began."""
        self.follow()
        return self.audit_state.find_open_session(session_id, now, self.caps.session_idle_hours)

    def damage(self) -> str | None:
        """Verdict that forbids changes until the log is verified or the damage accepted; None if there is none."""
        # Of a new workspace there is no log yet: a mark is about the log that an earlier one had at this path.
        return None if self.binding.is_new else self.log.damage()

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
            is_governing=self._is_governing,
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

    def _has_approval(self, plan_id: str) -> bool:
        """Whether the log has an approval of a plan."""
        return plan_id in self.audit_state.approvals or plan_id in self.audit_state.seals

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

    def verification_progress(self, seconds: float) -> Mapping[str, int] | None:
        """Progress of reading and verifying the whole log after waiting `seconds`; None once both have ended."""
        deadline = time.monotonic() + seconds
        if (reading := self.projection.wait(seconds)) is not None:
            return reading
        if self.damage() is not None:
            return None
        return self.log.background_check.wait(max(0.0, deadline - time.monotonic()))

    def save_snapshot(self, now: str) -> None:
        """Save the projected state, so that the next process does not read the whole log. Best effort."""
        if self.log.head is not None and self._state_path.is_dir():
            with suppress(OSError):
                self.log.background_check.save_stamp()
            self.projection.save(now, self.caps.session_idle_hours)

    def free_bytes(self) -> int:
        """Free space of the file system that the root is on."""
        return disk_reserve.free_bytes(self.files.fd)

    def close(self, now: str) -> None:
        """Sync the log, save a snapshot and close all descriptors."""
        self.plan_watch.stop()
        self.scope_counts.stop()
        self.manifest.stop()
        self.seen_plans.flush()
        self.projection.stop()
        self._follow_last()
        self.log.close()
        self.save_snapshot(now)
        self.served_sessions.close()
        if self._transactions is not None:
            self._transactions.close()
        self.blobs.kaiza_dir.close()
        self.files.close()

    def _follow_last(self) -> None:
        """Follow the log, so that the snapshot covers what other processes recorded."""
        try:
            self.follow()
        except errors.SystemError:
            return  # the snapshot ends at what this process has followed; the next one reads the rest

    def begin_recording(self) -> None:
        """Before the first record: write the identity that is missing, and carry over what an earlier state forbids.

        Idempotent. AUDIT_LOG_FAILED if the identity cannot be written.
        """
        if self._has_begun:
            return
        with self._binding_lock:
            self.state_key.ensure_exists()
            with identity.lock_identity(self._state_path):
                self.refresh_binding()
                is_new = self.binding.is_new or self.seen_plans.is_of_new_workspace()
                first = binding.establish(self.root, self._state_path, self.binding, self.state_key)
                self.refresh_binding()
                if is_new:
                    self._mark_plans_brought()
                for body in first:
                    self.log.append(partial(Body, body), durable=True)
                    self.notice = binding.describe_establishment(body)
            self._has_begun = True

    def adopt(self, adopted_seq: int) -> None:
        """Bind a foreign workspace by a person's decision, of which the log has a record already."""
        with identity.lock_identity(self._state_path):
            self.seen_plans.forget_edits()
            binding.adopt(self.root, self._state_path, adopted_seq)
        self.refresh_binding()

    def refresh_binding(self) -> None:
        """Read the binding again. After an adoption, here or by another process, the state is projected again."""
        with self._binding_lock:
            found = read_binding(self.root, self._state_path)
            if found.restricted_seq != self.binding.restricted_seq:
                self.projection.restart(found.restricted_seq)
            was_foreign, self.binding = self.binding.is_foreign, found
            if was_foreign and not found.is_foreign:
                self._mark_plans_brought()

    def _manifest_identity(self) -> str | None:
        """Proof that a manifest is of this workspace and this machine; None unless the workspace is bound."""
        known = identity.read_known(self._state_path) if self.binding.standing is Standing.BOUND else None
        if known is None or known.workspace_id is None:
            return None
        return self.state_key.compute_code("manifest", known.workspace_id.encode(), os.fsencode(self.root))

    def _is_governing(self, path: RelPath) -> bool:
        """Whether the path governs agents: control plane, here or in a workspace below, and steering files."""
        is_named_so = is_control_plane(path) or find_steering_part(path) is not None
        return is_named_so or bool(self.nested_paths([path]))

    def follow(self) -> None:
        """Follow the log: apply the records that other processes appended."""
        if self.binding.standing is not Standing.BOUND:
            self.refresh_binding()
            if self.binding.is_new:
                return
        head = self.log.head
        try:
            size = os.stat(self._log_path).st_size  # noqa: PTH116  on the path of every call; three times as fast as Path.stat
        except OSError:
            size = -1
        if (head is None or head.size != size) and self.is_recording():
            self.log.follow()
