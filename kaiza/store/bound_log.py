"""The log of one workspace as this machine takes it: whether the workspace is bound here, and the projected state."""

import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from kaiza.domain import errors
from kaiza.domain.audit.projection import AuditState, Session
from kaiza.domain.audit.record import Body
from kaiza.domain.caps import Caps
from kaiza.domain.paths.protected_names import LOG_DIRECTORY, LOG_PATH
from kaiza.store.audit.determinism import prepare_record
from kaiza.store.audit.log_projection import LogProjection
from kaiza.store.disk import state_dir
from kaiza.store.disk.state_key import StateKey
from kaiza.store.trust import binding, identity
from kaiza.store.trust.binding import Standing, read_binding
from kaiza.store.trust.seen_plans import SeenPlans


class BoundLog:
    """The binding of a workspace, its log, and the state projected from it. The first append writes the identity."""

    def __init__(self, root: str, caps: Caps, *, deterministic: bool | None = None) -> None:
        self.root = root
        self.caps = caps
        self._state_path = state_dir.path_of(root)
        self.binding = read_binding(root, self._state_path)
        self.notice: str | None = None
        """Sentence about what `begin_recording` did, for the agent or person whose call it was."""
        self.seen_plans = SeenPlans(root, self._state_path, self._has_approval)
        self.state_key = StateKey(self._state_path)
        self._binding_lock = threading.RLock()  # protects `binding`, `_has_begun` and what is projected with them
        self._has_begun = False
        self._log_path = f"{root}/{LOG_PATH}"
        self._audit_path = f"{root}/{LOG_DIRECTORY}"
        known = None
        if self.binding.is_new and self._state_path.is_dir():
            from kaiza.store.trust import retired_state  # noqa: PLC0415  most workspaces are not new

            # What an earlier workspace at this path forbids holds before the first record carries it over.
            known = retired_state.load_restrictions(self._state_path, self.state_key)
        self.projection = LogProjection(
            root,
            self._state_path,
            self.state_key,
            self.binding.restricted_seq,
            known=known,
            stamp=lambda body, seq: prepare_record(body, seq, wanted=deterministic, state=self.audit_state),
            lock_seconds=caps.audit_lock_ms / 1000,
        )
        self.log = self.projection.log

    @property
    def audit_state(self) -> AuditState:
        """State projected from the log; partial while a long log is being read."""
        return self.projection.state

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
        # A new workspace has no log yet: a mark is about the log that an earlier one had at this path.
        return None if self.binding.is_new else self.log.damage()

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

    def verification_progress(self, seconds: float) -> Mapping[str, int] | None:
        """Progress of reading and verifying the whole log after waiting `seconds`; None once both have ended."""
        deadline = time.monotonic() + seconds
        if (reading := self.projection.wait(seconds)) is not None:
            return reading
        if self.damage() is not None:
            return None
        return self.log.background_check.wait(max(0.0, deadline - time.monotonic()))

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

    def save_snapshot(self, now: str) -> None:
        """Save the projected state, so that the next process does not read the whole log. Best effort."""
        if self.log.head is not None and self._state_path.is_dir():
            with suppress(OSError):
                self.log.background_check.save_stamp()
            self.projection.save(now, self.caps.session_idle_hours)

    def close_log(self, now: str) -> None:
        """Sync the log, save a snapshot and close it."""
        self.projection.stop()
        self._follow_last()
        self.log.close()
        self.save_snapshot(now)

    def _follow_last(self) -> None:
        """Follow the log, so that the snapshot covers what other processes recorded."""
        try:
            self.follow()
        except errors.SystemError:
            return  # the snapshot ends at what this process has followed; the next one reads the rest

    def _has_approval(self, plan_id: str) -> bool:
        """Whether the log has an approval of a plan."""
        return plan_id in self.audit_state.approvals or plan_id in self.audit_state.seals

    def _mark_plans_brought(self) -> None:
        """The workspace is bound from now on: plans that came with it have not been approved here."""
        raise NotImplementedError
