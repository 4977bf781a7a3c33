"""Exclusive file lock with a deadline, taken and released by portalocker. The kernel releases it with the process.

portalocker is not imported with this module, because that takes about 50 ms and the opening answers of a server need
no lock. The server imports it in the background with `preload`, any other process when it takes its first lock.
"""

import os
import time

from kaiza.domain import errors

_SHORTEST_NAP = 0.00005
_LONGEST_NAP = 0.001
"""A holder needs microseconds, so that most waits end with the first naps."""


class FileLock:
    """The lock on one descriptor, which it owns. One caller at a time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def try_acquire(self) -> bool:
        """Whether the lock could be taken at once. AUDIT_LOCK_FAILED where the system refuses."""
        import portalocker  # noqa: PLC0415  see the top

        try:
            portalocker.lock(self._descriptor, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.AlreadyLocked:
            return False
        except portalocker.LockException as refused:
            raise _lock_error(refused) from refused
        return True

    def acquire(self, seconds: float) -> None:
        """Take the lock. AUDIT_LOCK_FAILED after waiting that long, or where the system refuses."""
        deadline = time.monotonic() + seconds
        nap = _SHORTEST_NAP
        # Polled, because a thread that is blocked in the kernel cannot be told that the deadline has passed.
        while not self.try_acquire():
            if time.monotonic() >= deadline:
                raise lock_timeout(seconds)
            time.sleep(nap)
            nap = min(2 * nap, _LONGEST_NAP)

    def release(self) -> None:
        """Release the lock. AUDIT_LOCK_FAILED where the system refuses."""
        import portalocker  # noqa: PLC0415  see the top

        try:
            portalocker.unlock(self._descriptor)
        except portalocker.LockException as refused:
            raise _lock_error(refused) from refused

    def close(self) -> None:
        """Close the descriptor, and with it release the lock. Closing twice is harmless."""
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
        human_message="Somebody else holds the record and did not let go in time. Try again.",
        cause={"waited_ms": int(max(0.0, seconds) * 1000)},
    )


def _lock_error(refused: Exception) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "AUDIT_LOCK_FAILED",
        human_message="The record could not be locked. Check the file system that holds the workspace.",
        cause=errors.describe_exception(refused.__cause__ or refused),
    )
