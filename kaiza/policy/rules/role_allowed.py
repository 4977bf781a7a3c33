"""The tool is open to the session's role: planner or executor. Neither approves plans.

A server bound to one role, or a token for one, begins sessions of that role only.
"""

from kaiza.domain import errors
from kaiza.domain.roles import describe_role, parse_role
from kaiza.policy.case import Case


def check_role_allowed(case: Case) -> errors.SystemError | None:
    """Refuse tools of the other role."""
    if case.session is not None and case.session.role in case.card.roles:
        return None
    roles = " and the ".join(map(describe_role, case.card.roles))
    next_step = "Call begin_session with that role, then pass its session_id."
    if case.bound_role is not None:
        next_step = "Leave this to a session with that role."
    return errors.SystemError.tool_failure(
        "UNAUTHORIZED_ACTION",
        human_message=f"{case.card.name} is only for the {roles}. {next_step}",
        cause={"role": case.session.role if case.session else None, "allowed_roles": list(case.card.roles)},
    )


def check_role_bound(case: Case) -> errors.SystemError | None:
    """Refuse `begin_session` with the other role."""
    role = parse_role(case.arguments.get("role") or "") or None
    for subject, bound_role in (("server serves", case.bound_role), ("token is for", case.token_role)):
        if None not in (bound_role, role) and role != bound_role:
            only = f"This {subject} the {describe_role(bound_role)} only."
            return errors.SystemError.tool_failure(
                "ROLE_MISMATCH",
                human_message=f"{only} Call begin_session with that role.",
                cause={"bound_role": bound_role, "asked_role": str(role)[:64]},
            )
    return None
