"""Verification of the whole log, once a process, in the background.

A process follows only what is new in the log. A record that was edited while no process ran is found by reading all of
it, which takes seconds for a million records. That is skipped if the file's stamp (inode, size and times) is the one
that an earlier process saved after it had verified the log, or had appended to a verified log and nothing else wrote.
On tmpfs stores through a mapping leave the times as they are, so no stamp counts there.
"""

import os
import threading
import time
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from kaiza.domain import errors
from kaiza.domain.audit.record import Verdict
from kaiza.store.audit import log_file
from kaiza.store.audit.damage_mark import DamageMark, is_damage
from kaiza.store.audit.verification.verify import compute_verdict
from kaiza.store.disk import lock_timeouts, small_files
from kaiza.store.disk.byte_io import keeps_times
from kaiza.store.disk.file_lock import FileLock
from kaiza.store.disk.state_dir import StateFile

MAX_FOREGROUND_BYTES = 1 << 20
"""A log up to this size is verified in the foreground, which takes a few milliseconds."""
_STAMP = StateFile("whole.json")
_LOCK_NAME = "verify.lock"


class LogStamp(NamedTuple):
    """Inode, size and times of the log file: with the same stamp it has the same bytes.

    The change time is what counts: a program can set the modification time, but not the change time.
    """

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def from_stat(cls, status: os.stat_result) -> "LogStamp":
        """The stamp in a file's status."""
        return cls(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def coarse_time_ns() -> int | None:
    """The time that a kernel without fine-grained timestamps gives a file written now; None if unknown.

    Linux from 6.13 on gives fine-grained ones to files whose status is read between writes, as the log's is.
    """
    clock = getattr(time, "CLOCK_REALTIME_COARSE", None)
    return None if clock is None else time.clock_gettime_ns(clock)


class _StoppedError(Exception):
    """The process is about to end, and the verification with it."""


class BackgroundVerification:
    """One process's verification, and the stamp up to which the log is known to be intact."""

    def __init__(self, root: str, directory: Path, damage_mark: DamageMark) -> None:
        self._root = root
        self._state_path = directory
        self._damage_mark = damage_mark
        self._mutex = threading.Lock()  # protects `_stamp`, `_has_compared` and `_has_begun`
        self._stamp: LogStamp | None = None
        self._has_compared = False
        self._has_begun = False
        self._ended = threading.Event()
        self._failure: errors.SystemError | None = None
        self._progress = (0, 0)
        self._stopping = False

    @property
    def is_done(self) -> bool:
        """Whether the whole log was verified, by this process or by an earlier one with the same stamp."""
        return self._ended.is_set()

    def note_append(self, before: LogStamp, after: LogStamp) -> None:
        """Note an append of this process: the stamps just before and after it, read under the log's lock."""
        with self._mutex:
            self._compare_stamp(before)
            # Any other stamp means that another program wrote to the log in between.
            is_ours = before == self._stamp or before.size == 0
            self._stamp = after if is_ours and self._identifies(after) else None

    def start(self) -> None:
        """Start the verification unless it has begun; a small log is verified when this returns."""
        with self._mutex:
            if self._has_begun or self._ended.is_set():
                return
            current = self._current_stamp()
            if current is None or current.size == 0:
                self._ended.set()
                return
            self._compare_stamp(current)
            if self._ended.is_set():
                return
            self._stamp = current if self._identifies(current) else None
            self._has_begun = True
        if current.size <= MAX_FOREGROUND_BYTES:
            self._verify_log()
        else:
            threading.Thread(target=self._verify_in_turn, name="kaiza-verify", daemon=True).start()

    def wait(self, seconds: float) -> dict[str, int] | None:
        """Wait until the log is verified; the progress if it is not after `seconds`, else None.

        AUDIT_LOG_FAILED if the log could not be read; the next call tries again.
        """
        self.start()
        if self._ended.wait(0 if self._failure else seconds):
            return None
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        done, total = self._progress
        return {"bytes": done, "of": total}

    def save_stamp(self) -> None:
        """Save the stamp for the next process, if the log is intact and still has it."""
        with self._mutex:
            stamp = self._stamp
        if not self._ended.is_set() or stamp is None or stamp != self._current_stamp() or not self._state_path.is_dir():
            return
        # Without a readable stamp the next process verifies the log, and nothing else is lost.
        _STAMP.replace(self._state_path, stamp._asdict(), durable=False)

    def stop(self) -> None:
        """End a running verification soon."""
        self._stopping = True

    def _compare_stamp(self, current: LogStamp) -> None:
        """Compare the log with the saved stamp, the first time that this process reads its status."""
        if self._has_compared:
            return
        self._has_compared = True
        if current.size == 0 or (current == self._saved_stamp() and self._keeps_times):
            self._stamp = current
            self._ended.set()

    def _identifies(self, stamp: LogStamp) -> bool:
        """Whether the log cannot have other bytes with the same stamp."""
        # Another write within the same tick of the clock (4 to 10 ms) would leave the same stamp.
        return self._keeps_times and stamp.ctime_ns != coarse_time_ns()

    @cached_property
    def _keeps_times(self) -> bool:
        """Whether the log's file system gives a changed file other times; otherwise every process reads all of it."""
        try:
            descriptor = log_file.open_for_reading(self._root)
            if descriptor is None:
                return False
            try:
                return keeps_times(descriptor)
            finally:
                os.close(descriptor)
        except (OSError, errors.SystemError):
            return False

    def _saved_stamp(self) -> LogStamp | None:
        try:
            return _STAMP.load(
                self._state_path, lambda members: LogStamp(*(members[name] for name in LogStamp._fields))
            )
        except (OSError, ValueError):
            return None

    def _current_stamp(self) -> LogStamp | None:
        try:
            return LogStamp.from_stat(os.lstat(log_file.path_of(self._root)))
        except OSError:
            return None

    def _verify_in_turn(self) -> None:
        """Verify while no other process does; if one has just done so, its stamp is enough."""
        try:
            before = self._saved_stamp()
            lock = small_files.open_lock(self._state_path / _LOCK_NAME)
        except OSError:
            self._verify_log()
            return
        try:
            self._wait_for_turn(lock)
            saved, current = self._saved_stamp(), self._current_stamp()
            # The log is the file that the other process has just verified, perhaps with more at its end.
            is_new = saved is not None and saved != before and self._keeps_times
            if is_new and saved and current and current.inode == saved.inode and current.size >= saved.size:
                self._ended.set()
            else:
                self._verify_log()
        finally:
            lock.close()

    def _wait_for_turn(self, lock: FileLock) -> None:
        """Wait until no other process verifies; not for long, because one may have been stopped while it did."""
        try:
            lock.acquire_within(lock_timeouts.VERIFICATION)
        except errors.SystemError:
            return  # no locks on this file system: several processes verify at a time

    def _verify_log(self) -> None:
        found = self._try_verdict()
        if found is None:
            return
        if is_damage(found.verdict):
            self._damage_mark.save(found)
            with self._mutex:
                self._stamp = None
        # After the mark: a change that waits for this event reads the mark next.
        self._ended.set()
        try:
            self.save_stamp()
        except OSError:
            return  # the next process verifies the log again

    def _try_verdict(self) -> Verdict | None:
        """The verdict on the whole log; None if it was stopped or failed, and the next call tries again."""
        found = None
        try:
            with suppress(_StoppedError):
                found = compute_verdict(self._root, self._state_path, self._report_progress, alone=True)
        except errors.SystemError as failure:
            self._failure = failure
        finally:
            if found is None:
                with self._mutex:
                    self._has_begun = False
        return found

    def _report_progress(self, done: int, total: int) -> None:
        self._progress = (done, total)
        if self._stopping:
            raise _StoppedError
