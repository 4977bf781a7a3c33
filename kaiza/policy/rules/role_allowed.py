"""The tool is open to the session's role: planner or executor. Neither approves plans."""

from kaiza.domain import errors
from kaiza.domain.roles import describe_role
from kaiza.policy.case import Case


def check_role_allowed(case: Case) -> errors.SystemError | None:
    """Refuse tools of the other role."""
    if case.session is not None and case.session.role in case.card.roles:
        return None
    roles = " and the ".join(map(describe_role, case.card.roles))
    return errors.SystemError.tool_failure(
        "UNAUTHORIZED_ACTION",
        human_message=f"{case.card.name} is only for the {roles}. {_next_step(case)}",
        cause={"role": case.session.role if case.session else None, "allowed_roles": list(case.card.roles)},
    )


def _next_step(case: Case) -> str:
    if case.bound_role is not None:
        return "Leave this to a session with that role."
    return "Call begin_session with that role, then pass its session_id."
