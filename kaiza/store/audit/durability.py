"""Makes what was appended durable, and only then lets the anchor name it."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kaiza.domain import errors
from kaiza.domain.audit.record import LogHead
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.damage_mark import DamageMark
from kaiza.store.audit.log_file import LogFile, log_error
from kaiza.store.disk.file_lock import lock_timeout

_MAX_DELAY_SECONDS = 0.8


class LogPosition(NamedTuple):
    """How far a log has been written. `head` is None where it is damaged: then the anchor stays where it was."""

    file: LogFile
    head: LogHead | None
    epoch: int


class Durability:
    """Syncs at once where asked to, and what nobody waits for within a second. A failed sync is final."""

    def __init__(self, place: Path, damage: DamageMark, lock_seconds: float) -> None:
        self._lock_seconds = lock_seconds
        self._checkpoint = Checkpoint(place)
        self._damage_mark = damage
        self._sync_mutex = threading.Lock()
        self._condition = threading.Condition()
        self._pending: LogPosition | None = None
        self._closing = False
        self._thread: threading.Thread | None = None
        self._failed = False

    def raise_if_failed(self) -> None:
        """AUDIT_LOG_FAILED where an earlier record did not become durable."""
        if self._failed:
            raise log_error(sentence="An earlier record did not reach the disk. Restart Kaiza, then verify the record.")

    def sync_now(self, point: LogPosition) -> None:
        """Everything up to there is durable, and anchored, when this returns. AUDIT_LOG_FAILED otherwise.

        What can be made ready is ready before the disk is: between the disk and the answer there is one small write.
        """
        if not self._sync_mutex.acquire(timeout=self._lock_seconds):
            raise lock_timeout(self._lock_seconds)
        try:
            self.raise_if_failed()
            head = point.head if self._damage_mark.read() is None else None
            step = self._checkpoint.prepare(head, point.epoch) if head is not None else None
            self._fsync_log(point)
            if step is not None:
                self._checkpoint.write(step)
        except OSError as refused:
            sentence = "The anchor outside the workspace could not be written. Check the state directory."
            raise log_error(refused, sentence) from refused
        finally:
            self._sync_mutex.release()

    def sync_soon(self, point: LogPosition) -> None:
        """The same, in the background, at the latest one second from now."""
        with self._condition:
            fresh = self._pending is None
            self._pending = point
            if self._thread is None:
                self._thread = threading.Thread(target=self._run_in_background, name="kaiza-sync", daemon=True)
                self._thread.start()
            elif fresh:
                self._condition.notify()

    def close(self) -> None:
        """The background has ended and everything is settled when this returns."""
        with self._condition:
            self._closing = True
            self._condition.notify()
        if self._thread is not None:
            self._thread.join()
        try:
            self._sync_pending()
        finally:
            if self._sync_mutex.acquire(timeout=self._lock_seconds):  # else a sync is stuck, and the anchor with it
                self._checkpoint.close()
                self._sync_mutex.release()

    def _sync_pending(self) -> None:
        with self._condition:
            pending, self._pending = self._pending, None
        if pending is None:
            return
        try:
            self.sync_now(pending)
        except errors.SystemError:
            with self._condition:
                self._pending = self._pending or pending
            raise

    def _fsync_log(self, point: LogPosition) -> None:
        try:
            os.fdatasync(point.file.descriptor)
        except OSError as refused:
            self._failed = True
            raise log_error(refused) from refused

    def _run_in_background(self) -> None:
        while not self._failed:
            with self._condition:
                self._condition.wait_for(lambda: self._pending is not None or self._closing)
                self._condition.wait_for(lambda: self._closing, _MAX_DELAY_SECONDS)
                if self._closing:
                    return
            with suppress(errors.SystemError):  # it is still pending, and is tried again unless a sync failed
                self._sync_pending()
