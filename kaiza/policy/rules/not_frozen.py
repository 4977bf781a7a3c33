"""No changes in a workspace that a person has frozen."""

from kaiza.domain import errors
from kaiza.policy.case import Case


def check_not_frozen(case: Case) -> errors.SystemError | None:
    """Refuse until `kaiza thaw`. The reason for the freeze is shown to people, not to agents."""
    freeze = case.audit_state.frozen
    if freeze is None:
        return None
    return errors.SystemError.invariant_violation(
        "WORKSPACE_FROZEN",
        error_code="POLICY_VIOLATION",
        human_message="A person froze this workspace, so changes are refused. Wait until a person runs kaiza thaw.",
        cause={"frozen_at": freeze.at},
    )
