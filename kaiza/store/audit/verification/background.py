"""Verification of the whole log, once for each process, in the background.

A process follows only what is new in the log; a record that was edited while no process ran is found by reading all of
it. That is spared where the file is, by its inode, size and times, the very one that was verified before and went on
with nothing but our own appends: then its stamp is the one noted in the state directory.
"""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import orjson

from kaiza.domain import errors
from kaiza.domain.audit.record import Verdict
from kaiza.store.audit import log_file
from kaiza.store.audit.damage_mark import DamageMark, is_damage
from kaiza.store.audit.verification.verify import compute_verdict
from kaiza.store.disk.file_lock import FileLock

MAX_FOREGROUND_BYTES = 1 << 20
"""A log up to this size is verified at once: that takes a few milliseconds."""
_STAMP_NAME = "whole.json"
_LOCK_NAME = "verify.lock"
_LOCK_SECONDS = 5.0
"""Seconds for which the verification of another process is waited for."""


class LogStamp(NamedTuple):
    """What the system knows of the log file; while that is the same, so are its bytes."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def from_stat(cls, found: os.stat_result) -> "LogStamp":
        """Take it from what a stat found."""
        return cls(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def coarse_time_ns() -> int | None:
    """The time that a file system without finer times gives to a file that is written now; None where that is unknown.

    Linux from 6.13 on gives finer ones to files that are looked at between writes, as the log is.
    """
    clock = getattr(time, "CLOCK_REALTIME_COARSE", None)
    return None if clock is None else time.clock_gettime_ns(clock)


class _StoppedError(Exception):
    """The process is about to end, and the verification with it."""


class BackgroundVerification:
    """One process's verification, and the stamp up to which the log is known to be whole."""

    def __init__(self, root: str, place: Path, damage: DamageMark) -> None:
        self._root = root
        self._state_path = place
        self._damage_mark = damage
        self._mutex = threading.Lock()
        """Protects the stamp and whether the verification has begun."""
        self._stamp: LogStamp | None = None
        self._has_compared = False
        self._has_begun = False
        self._ended = threading.Event()
        self._failure: errors.SystemError | None = None
        self._progress = (0, 0)
        self._stopping = False

    @property
    def is_done(self) -> bool:
        """Whether all of the log was verified, by this process or up to its beginning."""
        return self._ended.is_set()

    def note_append(self, before: LogStamp, after: LogStamp) -> None:
        """Take in an append of our own: the stamps just before and just after it, under the log's lock.

        A time that is the system's last tick says nothing: another write within that tick would leave the same one.
        """
        with self._mutex:
            self._compare_stamp(before)
            is_ours = before == self._stamp or before.size == 0
            self._stamp = after if is_ours and after.ctime_ns != coarse_time_ns() else None

    def start(self) -> None:
        """Begin, where that was not done before; a small log is verified when this returns."""
        with self._mutex:
            if self._has_begun or self._ended.is_set():
                return
            found = self._current_stamp()
            if found is None or found.size == 0:
                self._ended.set()
                return
            self._compare_stamp(found)
            if self._ended.is_set():
                return
            self._stamp = found if found.ctime_ns != coarse_time_ns() else None
            self._has_begun = True
        if found.size <= MAX_FOREGROUND_BYTES:
            self._verify_log()
        else:
            threading.Thread(target=self._verify_in_turn, name="kaiza-verify", daemon=True).start()

    def wait(self, seconds: float) -> dict[str, int] | None:
        """None as soon as the log was verified; after so many seconds without, how far it has come.

        AUDIT_LOG_FAILED where the log could not be read; the next call tries again.
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
        """Note for the next process that the log is whole, if it is the one we know."""
        with self._mutex:
            stamp = self._stamp
        if not self._ended.is_set() or stamp is None or stamp != self._current_stamp() or not self._state_path.is_dir():
            return
        beside = self._state_path / f"{_STAMP_NAME}.{os.getpid()}"
        beside.write_bytes(orjson.dumps(list(stamp)))
        beside.replace(self._state_path / _STAMP_NAME)

    def stop(self) -> None:
        """Let a verification that is under way end soon."""
        self._stopping = True

    def _compare_stamp(self, now: LogStamp) -> None:
        """Compare the log as it is first seen with the one that was noted."""
        if self._has_compared:
            return
        self._has_compared = True
        if now.size == 0 or now == self._saved_stamp():
            self._stamp = now
            self._ended.set()

    def _saved_stamp(self) -> LogStamp | None:
        try:
            return LogStamp(*orjson.loads((self._state_path / _STAMP_NAME).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def _current_stamp(self) -> LogStamp | None:
        try:
            return LogStamp.from_stat(os.lstat(log_file.path_of(self._root)))
        except OSError:
            return None

    def _verify_in_turn(self) -> None:
        """Verify while no other process does; where one just did, what it noted will do."""
        try:
            before = self._saved_stamp()
            descriptor = os.open(
                self._state_path / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
        except OSError:
            self._verify_log()
            return
        lock = FileLock(descriptor)
        try:
            with suppress(errors.SystemError):  # a process that was stopped in its verification holds nobody up
                lock.acquire(_LOCK_SECONDS)
            noted = self._saved_stamp()
            if noted is not None and noted != before and self._is_continuation_of(noted):
                self._ended.set()
            else:
                self._verify_log()
        finally:
            lock.close()

    def _is_continuation_of(self, noted: LogStamp) -> bool:
        """Whether the log is the file that another process has just verified, or that file with more at its end."""
        now = self._current_stamp()
        return now is not None and now.inode == noted.inode and now.size >= noted.size

    def _verify_log(self) -> None:
        """Judge all of the log; damage is noted and stops changes. What could not be read is tried again later."""
        found = self._try_verdict()
        if found is None:
            return
        if is_damage(found.verdict):
            self._damage_mark.save(found)
            self._discard_stamp()
        self._ended.set()
        try:
            self.save_stamp()
        except OSError:
            return  # the next process verifies once more

    def _try_verdict(self) -> Verdict | None:
        """The verdict on all of the log; None where it came to none, and the next call tries again."""
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

    def _discard_stamp(self) -> None:
        """The log is not whole: no stamp of it may be noted."""
        with self._mutex:
            self._stamp = None

    def _report_progress(self, done: int, total: int) -> None:
        self._progress = (done, total)
        if self._stopping:
            raise _StoppedError
