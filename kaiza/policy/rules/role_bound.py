"""A server bound to one role, or a token for one, opens sessions for that role only."""

from kaiza.domain import errors
from kaiza.domain.roles import describe_role, parse_role
from kaiza.policy.case import Case


def check_role_bound(case: Case) -> errors.SystemError | None:
    """Refuse `begin_session` with the other role."""
    role = parse_role(case.arguments.get("role") or "") or None
    for subject, bound_role in (("server serves", case.bound_role), ("token is for", case.token_role)):
        if None not in (bound_role, role) and role != bound_role:
            word = describe_role(bound_role)
            return errors.SystemError.tool_failure(
                "ROLE_MISMATCH",
                human_message=f"This {subject} the {word} only. Call begin_session with that role.",
                cause={"bound_role": bound_role, "asked_role": str(role)[:64]},
            )
    return None
