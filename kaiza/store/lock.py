"""A lock on a file that is waited for no longer than a deadline, and that a dead process cannot keep.

The kernel lets go of it with the process. Where it is taken, it is tried a few more times, since whoever holds it
needs microseconds; then a thread of its own waits in the kernel's queue. When the deadline passes first, that thread
goes on waiting, and a lock that comes late is let go unused.
"""

import fcntl
import os
import threading
import time

import portalocker

from kaiza.domain import errors

_AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB
_YIELDS = 30
_TRIES = _YIELDS + 10
_NAP = 0.0001


class FileLock:
    """The exclusive lock on one descriptor, which from now on belongs to this. One caller at a time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._turn = threading.Condition()
        self._waiting = False
        self._wanted = False
        self._abandoned = False
        self._failed: Exception | None = None

    def taken(self) -> bool:
        """Whether the lock could be had at once. AUDIT_LOCK_FAILED where the system refuses."""
        if self._waiting:
            return False
        try:
            fcntl.flock(self._descriptor, _AT_ONCE)
        except BlockingIOError:
            return False
        except OSError as refused:
            raise _failure(refused) from refused
        return True

    def acquire(self, seconds: float) -> None:
        """The lock is ours when this returns. AUDIT_LOCK_FAILED after that many seconds, or where it cannot be had."""
        for turn in range(_TRIES):
            if self.taken():
                return
            if turn < _YIELDS:
                os.sched_yield()
            else:
                time.sleep(_NAP)
        with self._turn:
            self._wait(seconds)

    def release(self) -> None:
        """Let go. AUDIT_LOCK_FAILED where the system refuses even that."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        except OSError as refused:
            raise _failure(refused) from refused

    def abandon(self) -> None:
        """Close the descriptor, now or as soon as the thread that waits with it is back."""
        with self._turn:
            if not self._abandoned and not self._waiting:
                os.close(self._descriptor)
            self._abandoned = True

    def _wait(self, seconds: float) -> None:
        self._wanted = True
        if not self._waiting:
            self._waiting = True
            threading.Thread(target=self._stand_in_line, name="kaiza-lock", daemon=True).start()
        if not self._turn.wait_for(lambda: not self._waiting, seconds):
            self._wanted = False
            raise late(seconds)
        if self._failed is not None:
            refused, self._failed = self._failed, None
            raise _failure(refused) from refused

    def _stand_in_line(self) -> None:
        failed = None
        try:
            portalocker.lock(self._descriptor, portalocker.LockFlags.EXCLUSIVE)
        except portalocker.LockException as refused:
            failed = refused
        with self._turn:
            if self._abandoned:
                os.close(self._descriptor)
            elif self._wanted:
                self._failed = failed
            elif failed is None:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self._waiting = False
            self._turn.notify_all()


def late(seconds: float) -> errors.SystemError:
    """What is said when a deadline passed."""
    return errors.SystemError.tool_failure(
        "AUDIT_LOCK_FAILED",
        human_message="Somebody else holds the record and did not let go in time. Try again.",
        cause={"waited_ms": int(max(0.0, seconds) * 1000)},
    )


def _failure(refused: Exception) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "AUDIT_LOCK_FAILED",
        human_message="The record could not be locked. Check the file system that holds the workspace.",
        cause=errors.describe_exception(refused.__cause__ or refused),
    )
