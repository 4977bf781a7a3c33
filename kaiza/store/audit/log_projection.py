"""State projected from a workspace's log. If the log is long and has no snapshot, it is read in the background.

Until then the state is partial: it knows only the records at the end of the log, for example the session that has just
begun. What it lacks may be neither shown as absent nor taken for a permission.
"""

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kaiza.domain import errors
from kaiza.domain.audit.deterministic import is_deterministic
from kaiza.domain.audit.projection import AuditState
from kaiza.domain.audit.record import LogHead, Record
from kaiza.domain.audit.record_folding import apply_record, apply_restrictions
from kaiza.store.audit import snapshot
from kaiza.store.audit.continuity import ContinuityCheck
from kaiza.store.audit.log import AuditLog
from kaiza.store.audit.projection_build import ProjectionBuild, ProjectionSource
from kaiza.store.audit.reader import read_records
from kaiza.store.audit.tail import RecordCallback
from kaiza.store.disk.state_key import StateKey

_STOP_SECONDS = 2.0


class LogProjection:
    """The state, the log that it follows, and the reading of what is missing."""

    def __init__(
        self,
        root: str,
        state_path: Path,
        key: StateKey,
        restricted_seq: int,
        *,
        known: AuditState | None = None,
        **options: Any,
    ) -> None:
        self._root = root
        self._source = ProjectionSource(root, state_path, key, restricted_seq, self._apply_to)
        self._mutex = threading.Lock()  # protects `_build`, `_is_closed` and `_verifies`
        self._build: ProjectionBuild | None = None
        self._is_closed = False
        self._verifies = False
        loaded, start = self._source.load()
        self.state = known or loaded
        """Replaced and never emptied, so that a call is judged with one state."""
        self.log = AuditLog(root, follow=self._apply_to(self.state, restricted_seq), start=start, **options)
        self.log.skip_long_backlogs(self._leave_gap)

    def restart(self, restricted_seq: int) -> None:
        """Project all records again, with others restricted. A short log is projected when this returns.

        Until then calls are judged with the old state, and with a partial one if the log is long.
        """
        source = self._source
        self._source = ProjectionSource(self._root, source.state_path, source.key, restricted_seq, self._apply_to)
        self._stop_build()
        fresh = AuditState()
        apply = self._apply_to(fresh, restricted_seq)
        self.log.replay(apply)
        self.log.catch_up()

        def judge_with_fresh(_file: object, continuity: ContinuityCheck) -> None:
            if continuity.follower.on_record is apply:  # else a long log is being read
                self.state = fresh

        self.log.hold_still(judge_with_fresh)

    def wait(self, seconds: float) -> Mapping[str, int] | None:
        """Wait until the log is read; the progress if it is not after `seconds`, else None.

        If the log is damaged, the state stays partial: some records cannot be read.

        AUDIT_LOG_FAILED if the log could not be read; the next call tries again.
        """
        deadline = time.monotonic() + seconds
        while self.state.is_partial and not self._is_damaged():
            build = self._current_build()
            is_over = not build.ended.wait(max(0.0, deadline - time.monotonic())) or time.monotonic() > deadline
            if build.failure is not None:
                failure, build.failure = build.failure, None
                raise failure
            if is_over and self.state.is_partial:
                return self.progress
        return None

    @property
    def progress(self) -> Mapping[str, int] | None:
        """Bytes read, and bytes in all, while the log is being read; else None."""
        if not self.state.is_partial or self._is_damaged():
            return None
        build = self._build
        done, total = build.progress if build is not None else (0, 0)
        return {"bytes": done, "of": total}

    def _is_damaged(self) -> bool:
        """Whether there is nothing more to read, because the log is damaged and was not repaired since."""
        build = self._build
        return build is not None and build.found_damage and self.log.damage() is not None

    def start_verification(self) -> None:
        """Verify the whole log in the background, once what is missing was read: both want one processor."""
        with self._mutex:
            self._verifies = True
        if not self.state.is_partial:
            self.log.background_check.start()

    def save(self, now: str, idle_hours: int) -> None:
        """Save the state without expired sessions, so that the next process does not read all. Best effort."""
        self._save(lambda state: state.without_expired(now, idle_hours))

    def _save(self, prepare: Callable[[AuditState], AuditState] = lambda state: state) -> None:
        try:
            _, known = self._source.load()
            # Another process that followed the log further may have saved its snapshot already: never go back.
            body = self.log.hold_still(lambda _file, _position: self._encode(prepare, known.seq if known else 0))
            if body is not None:
                self._source.save(body)
        except (OSError, errors.SystemError):
            return  # the next process reads more of the log

    def _encode(self, prepare: Callable[[AuditState], AuditState], least_seq: int) -> bytes | None:
        """The snapshot, with a state and a head that belong together; None if there is nothing to save."""
        head = self.log.head
        if self.state.is_partial or head is None or head.seq < least_seq:
            return None
        return snapshot.encode(prepare(self.state), head, self._source.restricted_seq)

    def stop(self) -> None:
        """End a reading; the next process continues from what it has saved."""
        with self._mutex:
            self._is_closed = True
        self._stop_build(_STOP_SECONDS)

    def _stop_build(self, seconds: float = 0.0) -> None:
        with self._mutex:
            build, self._build = self._build, None
        if build is not None:
            build.stop(seconds)

    def _current_build(self) -> ProjectionBuild:
        with self._mutex:
            build = self._build
            if build is None or (build.ended.is_set() and build.failure is None):
                is_in_doubt = build is not None and (build.ignores_snapshot or build.found_damage)
                build = self._start_build(ignores_snapshot=is_in_doubt)
                self._build = build
            return build

    def _start_build(self, *, ignores_snapshot: bool) -> ProjectionBuild:
        build = ProjectionBuild(self._source, self.log, self._complete, self._save, ignores_snapshot=ignores_snapshot)
        if not self._is_closed:
            build.start()
        return build

    def _leave_gap(self, head: LogHead, has_restarted: bool) -> RecordCallback:  # noqa: FBT001  a callback
        """Begin a partial state after a head, and read what is before. Called under the log's mutex."""
        first = next(read_records(self._root), None)
        state = AuditState(is_partial=True, is_deterministic=first is not None and is_deterministic(first))
        self._stop_build()
        self.state = state
        with self._mutex:
            self._build = self._start_build(ignores_snapshot=has_restarted)
            self._build.progress = (0, head.size)
        return self._apply_to(state, self._source.restricted_seq)

    def _complete(self, state: AuditState) -> None:
        """Take the state that was read. Called under the log's mutex."""
        self.state = state
        with self._mutex:
            verifies = self._verifies
        if verifies:
            self.log.background_check.start()

    def _apply_to(self, state: AuditState, restricted_seq: int) -> RecordCallback:
        """The function that applies a record to a state, with records from elsewhere restricted."""
        if restricted_seq == 0:
            return partial(apply_record, state)

        def apply(record: Record) -> None:
            if restricted_seq < 0 or record.seq <= restricted_seq:
                is_begin = record.tool_name == "begin_session"
                apply_restrictions(state, record, self._source.key.find_state_id() if is_begin else None)
            else:
                apply_record(state, record)

        return apply
