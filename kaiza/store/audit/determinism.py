"""Keeps a log deterministic or ordinary, as its first record is: refuses records of the other kind."""

from collections.abc import Iterable

from kaiza.domain import errors
from kaiza.domain.audit.deterministic import is_deterministic, stamp_record
from kaiza.domain.audit.projection import AuditState
from kaiza.domain.audit.record import Body
from kaiza.store.audit.reader import read_records
from kaiza.store.disk import small_files
from kaiza.store.disk.file_lock import FileLock

_FLAG = "--deterministic"


def prepare_record(body: Body, seq: int, *, wanted: bool | None, state: AuditState) -> Body:
    """The record in the form of this log. A person's command (`wanted` None) follows the log.

    AUDIT_LOG_FAILED if another process has begun the log in the other form since this server started.
    """
    is_counted = bool(wanted) if seq == 1 else state.is_deterministic
    if wanted not in (None, is_counted):
        raise errors.SystemError.tool_failure(
            "AUDIT_LOG_FAILED",
            human_message=f"Another process began the audit log {_with(flag=is_counted)}. Restart this server.",
            cause={"deterministic": is_counted},
        )
    return stamp_record(body, seq) if is_counted else body


def require_mode(root: str, *, deterministic: bool) -> None:
    """BOOTSTRAP_FAILURE if the first record of the log is of the other kind."""
    try:
        first = next(read_records(root), None)
    except (OSError, errors.SystemError):
        return  # the next append reports that the log cannot be read
    if first is None or is_deterministic(first) == deterministic:
        return
    advice = (
        f"Serve the workspace without {_FLAG}, or use a workspace whose log is empty."
        if deterministic
        else f"Set up a new workspace, or serve this one with {_FLAG}, which is for tests only."
    )
    raise errors.SystemError.startup_failure(
        "BOOTSTRAP_FAILURE",
        human_message=f"The audit log was begun {_with(flag=not deterministic)}. {advice}",
        cause={"deterministic": not deterministic},
    )


def lock_roots(roots: Iterable[str]) -> list[FileLock]:
    """Locks that make this server the only deterministic one in its workspaces. BOOTSTRAP_FAILURE if it is not.

    Two servers that count the same records would give different calls the same id.
    """
    locks: list[FileLock] = []
    for root in roots:
        # The directory itself, because starting a server writes nothing.
        locks.append(FileLock(small_files.open_directory(root)))
        if not locks[-1].try_acquire():
            for lock in locks:
                lock.close()
            raise errors.SystemError.startup_failure(
                "BOOTSTRAP_FAILURE",
                human_message=f"Another server with {_FLAG} serves this workspace. Stop it first.",
            )
    return locks


def _with(*, flag: bool) -> str:
    return f"{'with' if flag else 'without'} {_FLAG}"
