"""Changes that a dead process began and did not finish, and how their files compare with the hashes in the intents.

Only finds them; `store.crash_recovery` settles them.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal

from kaiza.domain import errors
from kaiza.domain.audit.record import Record
from kaiza.domain.paths.protected_names import is_control_plane
from kaiza.domain.paths.rel_path import RelPath, parse
from kaiza.store.disk import lock_timeouts, small_files, state_dir
from kaiza.store.disk.byte_io import hash_content
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.workspace import Workspace

_LOCK_NAME = "recovery.lock"


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


def hold_lock(root: str) -> AbstractContextManager[None]:
    """Hold the lock under which one process at a time recovers: two would record the same change."""
    return small_files.hold_lock(state_dir.path_of(root) / _LOCK_NAME, lock_timeouts.RECOVERY)


MAX_HASHED_BYTES = 1 << 30
_UNKNOWN_HASH = ""
FileState = Literal["before", "after", "both", "other"]
"""`both` where the change leaves the content as it was."""


def comparable_paths(workspace: Workspace, changes: Sequence[Mapping[str, Any]]) -> list[RelPath] | None:
    """Every path that the changes touch; None where one is protected or no path."""
    try:
        touched = [parse(path) for change in changes for path in (change["path"], change["source"]) if path]
    except errors.SystemError:
        return None
    # The log may have come with a clone: its intent must not reveal whether a guessed hash is that of a secret.
    return None if any(is_control_plane(path) or workspace.is_unreadable(path) for path in touched) else touched


def compare_files(workspace: Workspace, changes: Sequence[Mapping[str, Any]]) -> list[FileState]:
    """How the file of each change is now; empty where a path is protected."""
    states: list[FileState] = []
    for change in changes if comparable_paths(workspace, changes) is not None else ():
        current = _hash_file(workspace.files, change["path"])
        is_before = current == (change["before_hash"] if change["source"] is None else None)
        is_after = current == change["after_hash"]
        states.append("both" if is_before and is_after else "after" if is_after else "before" if is_before else "other")
    return states


def _hash_file(files: ConfinedRoot, path: str) -> str | None:
    """SHA-256 of a file; None where there is none, `_UNKNOWN_HASH` where it cannot be read or is too large."""
    try:
        with files.open_file(parse(path), lambda _real: None) as file:
            if file.size > MAX_HASHED_BYTES:
                return _UNKNOWN_HASH
            return hash_content(file.chunks())
    except errors.SystemError as error:
        return None if error.error_code == "FILE_NOT_FOUND" else _UNKNOWN_HASH
