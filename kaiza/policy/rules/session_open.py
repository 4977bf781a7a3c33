"""The call names an open session."""

from kaiza.domain import errors
from kaiza.domain.roles import describe_role
from kaiza.policy.case import Case
from kaiza.policy.rules.log_sound import unverified_error


def check_session_open(case: Case) -> errors.SystemError | None:
    """Refuse without an open session, or with one of a role that this server is not bound to.

    While the log is being read, whether the session is open may not be known yet.
    """
    if case.session is None and case.unread is not None:
        return unverified_error(case.unread, is_read=False)
    if case.session is None:
        return errors.SystemError.tool_failure(
            "SESSION_NOT_INITIALIZED",
            human_message="No open session for this call. Call begin_session, then pass its session_id.",
        )
    if case.bound_role is not None and case.session.role != case.bound_role:
        return errors.SystemError.tool_failure(
            "ROLE_MISMATCH",
            human_message=f"This server serves the {describe_role(case.bound_role)} only. Begin a session as one.",
            cause={"bound_role": case.bound_role, "session_role": case.session.role},
        )
    return None
