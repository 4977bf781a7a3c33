"""No changes by a role that is locked after a refused attempt."""

from kaiza.domain import errors
from kaiza.policy.case import Case


def check_not_locked(case: Case) -> errors.SystemError | None:
    """Refuse until the role reports or a person unlocks it."""
    # The lock is on the role, not the session: a new session must not be a way around it.
    lock = case.audit_state.locks.get(case.session.role) if case.session else None
    if lock is None:
        return None
    return errors.SystemError.tool_failure(
        "SESSION_LOCKED",
        human_message=(
            "Changes are locked after a refused change. "
            "Call write_report and say what happened, or ask a person to run kaiza session unlock."
        ),
        cause={"locked_by": lock.error_code, "request_id": lock.request_id, "seq": lock.seq, "at": lock.at},
    )
