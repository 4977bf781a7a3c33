"""Durability of the log: fsyncs what was appended, and only then moves the checkpoint forward."""

import os
import threading
from pathlib import Path
from typing import NamedTuple

from kaiza.domain import errors
from kaiza.domain.audit.record import LogHead
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.damage_mark import DamageMark
from kaiza.store.audit.log_file import LogFile, log_error
from kaiza.store.disk.file_lock import lock_timeout

# Records are durable within a second: this delay, and 200 ms for the fsync.
_MAX_DELAY_SECONDS = 0.8


class LogPosition(NamedTuple):
    """Position up to which a log was written. Without a `head` the log is damaged, and the checkpoint stays."""

    file: LogFile
    head: LogHead | None
    epoch: int


class Durability:
    """Fsyncs the log at once or in the background. A failed fsync is final for this process."""

    def __init__(self, directory: Path, damage_mark: DamageMark, lock_seconds: float) -> None:
        self._lock_seconds = lock_seconds
        self._checkpoint = Checkpoint(directory)
        self._damage_mark = damage_mark
        self._sync_mutex = threading.Lock()  # one fsync at a time; protects the checkpoint
        self._condition = threading.Condition()  # protects `_pending` and `_closing`
        self._pending: LogPosition | None = None
        self._closing = False
        self._thread: threading.Thread | None = None
        self._failed = False

    def raise_if_failed(self) -> None:
        """AUDIT_LOG_FAILED after a failed fsync."""
        # After a failed fsync the kernel marks the lost pages as clean, and the next fsync succeeds without them: it
        # proves nothing about earlier records. A restart reads the log again.
        if self._failed:
            raise log_error(
                sentence="An earlier record could not be written to disk. Restart Kaiza, then run 'kaiza audit verify'."
            )

    def sync_now(self, position: LogPosition) -> None:
        """Make the log durable up to this position, then write the checkpoint. AUDIT_LOG_FAILED if either fails."""
        if not self._sync_mutex.acquire(timeout=self._lock_seconds):
            raise lock_timeout(self._lock_seconds)
        try:
            self.raise_if_failed()
            # A damaged log gets no new checkpoint: that would approve the damage.
            head = position.head if self._damage_mark.read() is None else None
            prepared = self._checkpoint.prepare(head, position.epoch) if head is not None else None
            self._fsync_log(position)
            # Only now: a checkpoint of a record that a power cut then takes away would report the log as cut off.
            if prepared is not None:
                self._checkpoint.write(prepared)
        except OSError as refused:
            sentence = "The checkpoint outside the workspace could not be written. Check the state directory."
            raise log_error(refused, sentence) from refused
        finally:
            self._sync_mutex.release()

    def sync_soon(self, position: LogPosition) -> None:
        """Do the same in the background, within a second. Records appended until then share the fsync."""
        with self._condition:
            was_idle = self._pending is None
            self._pending = position
            if self._thread is None:
                self._thread = threading.Thread(target=self._run_in_background, name="kaiza-sync", daemon=True)
                self._thread.start()
            elif was_idle:
                self._condition.notify()

    def close(self) -> None:
        """End the background thread, sync what is pending, and close the checkpoint."""
        with self._condition:
            self._closing = True
            self._condition.notify()
        if self._thread is not None:
            self._thread.join()
        try:
            self._sync_pending()
        finally:
            # If an fsync hangs, the checkpoint stays open: the hanging thread may still write it.
            if self._sync_mutex.acquire(timeout=self._lock_seconds):
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

    def _fsync_log(self, position: LogPosition) -> None:
        try:
            # fdatasync also writes the file's size, all that an append changes besides data; times may be lost.
            os.fdatasync(position.file.descriptor)
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
            try:
                self._sync_pending()
            except errors.SystemError:
                continue  # still pending, and tried again unless an fsync failed; `close` raises what remains
