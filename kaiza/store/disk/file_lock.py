"""Exclusive file lock with a deadline, acquired and released by portalocker. The kernel releases it with the process.

portalocker is not imported with this module, because that takes about 50 ms and the opening answers of a server need
no lock. The server imports it in the background with `preload`, any other process when it takes its first lock.
"""

import os
import time

from kaiza.domain import errors
from kaiza.domain.plain_values import describe_exception

# A holder needs some ten microseconds, so most waits end with the first naps.
_SHORTEST_NAP = 0.00005
_LONGEST_NAP = 0.001


class FileLock:
    """Lock on one descriptor, which it owns. Not thread-safe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def try_acquire(self) -> bool:
        """Acquire the lock if it is free. AUDIT_LOCK_FAILED if the system refuses."""
        import portalocker  # noqa: PLC0415  see the top

        try:
            portalocker.lock(self._descriptor, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.AlreadyLocked:
            return False
        except portalocker.LockException as refused:
            raise _lock_error(refused) from refused
        return True

    def acquire(self, seconds: float) -> None:
        """Acquire the lock. AUDIT_LOCK_FAILED after waiting `seconds` for it, or if the system refuses."""
        if not self.acquire_within(seconds):
            raise lock_timeout(seconds)

    def acquire_within(self, seconds: float) -> bool:
        """Acquire the lock; False after waiting `seconds` for it. AUDIT_LOCK_FAILED if the system refuses."""
        deadline = time.monotonic() + seconds
        nap = _SHORTEST_NAP
        # Polled, because a thread that blocks in the kernel cannot time out: it could get the lock after its caller
        # has given up, and keep every other process out.
        while not self.try_acquire():
            if time.monotonic() >= deadline:
                return False
            time.sleep(nap)
            nap = min(2 * nap, _LONGEST_NAP)
        return True

    def release(self) -> None:
        """Release the lock. AUDIT_LOCK_FAILED if the system refuses."""
        import portalocker  # noqa: PLC0415  see the top

        try:
            portalocker.unlock(self._descriptor)
        except portalocker.LockException as refused:
            raise _lock_error(refused) from refused

    def close(self) -> None:
        """Close the descriptor, which also releases the lock. Closing twice is harmless."""
        # The descriptor is forgotten first: a second close must not close a number that the system has given out again.
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def preload() -> None:
    """Import portalocker, so that the first lock is not slower than the others."""
    import portalocker  # noqa: F401, PLC0415  see the top


def lock_timeout(seconds: float) -> errors.SystemError:
    """AUDIT_LOCK_FAILED after waiting `seconds` for the lock."""
    return errors.SystemError.tool_failure(
        "AUDIT_LOCK_FAILED",
        human_message="Another process kept the audit log locked for too long. Try again.",
        cause={"waited_ms": int(max(0.0, seconds) * 1000)},
    )


def _lock_error(refused: Exception) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "AUDIT_LOCK_FAILED",
        human_message="The audit log could not be locked. Check the file system that holds the workspace.",
        cause=describe_exception(refused.__cause__ or refused),
    )
