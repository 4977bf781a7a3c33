"""Changes that a dead process began and did not finish. Only finds them; `store.crash_recovery` settles them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from kaiza.domain.audit.record import Record
from kaiza.store.disk import lock_timeouts, state_dir
from kaiza.store.disk.file_lock import FileLock
from kaiza.store.workspace import Workspace

_LOCK_NAME = "recovery.lock"
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


def find_abandoned(workspace: Workspace) -> dict[str, Record]:
    """Open intents of processes that have ended, by request id, oldest first. Those of living ones are under way."""
    intents = [*workspace.audit_state.intents.items()]  # a copy: another thread may follow the log meanwhile
    return {txn: intent for txn, intent in intents if workspace.is_dead(writer_of(intent))}


def writer_of(intent: Record) -> str:
    """Liveness id of the process that wrote an intent."""
    return str(intent.detail.get("live", ""))


def has_abandoned(workspace: Workspace) -> bool:
    """Whether there may be something to recover: a journal, or an open intent without a living writer."""
    try:
        return workspace.has_journals() or bool(find_abandoned(workspace))
    except OSError:  # reported where the journals are read
        return True


def is_recovery_due(workspace: Workspace) -> bool:
    """Whether to recover before the next call: at this process's first use, and when another process has died since.

    What a recovery of this process had to leave is not due again: only the next session tries it again.
    """
    if workspace.is_recovery_due:
        workspace.follow()
        if workspace.audit_state.is_partial or has_abandoned(workspace):
            return True
        workspace.is_recovery_due = False
    return bool(workspace.audit_state.intents) and not workspace.left_open.issuperset(find_abandoned(workspace))


@contextmanager
def hold_lock(root: str) -> Iterator[None]:
    """Hold the lock under which one process at a time recovers: two would record the same change."""
    directory = state_dir.path_of(root)
    descriptor = os.open(directory / _LOCK_NAME, _LOCK_FLAGS, 0o600)
    lock = FileLock(descriptor)
    try:
        state_dir.give_to_owner(directory, descriptor)
        lock.acquire(lock_timeouts.RECOVERY)
        yield
    finally:
        lock.close()
