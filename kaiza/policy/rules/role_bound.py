"""A server bound to one role opens sessions for that role only."""

from kaiza.domain import errors
from kaiza.policy.case import Case


def check_role_bound(case: Case) -> errors.SystemError | None:
    """Refuse `begin_session` with the other role."""
    role = case.arguments.get("role")
    if case.bound_role is None or role is None or role == case.bound_role:
        return None
    return errors.SystemError.tool_failure(
        "ROLE_MISMATCH",
        human_message=f"This server serves {case.bound_role} only. Call begin_session with that role.",
        cause={"bound_role": case.bound_role, "asked_role": str(role)[:64]},
    )
