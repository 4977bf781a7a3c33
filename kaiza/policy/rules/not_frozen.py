"""A frozen workspace stands still until a person thaws it."""

from kaiza.domain import errors
from kaiza.policy.case import Case


def check_not_frozen(case: Case) -> errors.SystemError | None:
    """Refuse every change while a freeze holds."""
    freeze = case.audit_state.frozen
    if freeze is None:
        return None
    return errors.SystemError.invariant_violation(
        "WORKSPACE_FROZEN",
        error_code="POLICY_VIOLATION",
        human_message="A person has frozen the workspace. Wait until a person runs kaiza thaw.",
        cause={"frozen_at": freeze.at},
    )
