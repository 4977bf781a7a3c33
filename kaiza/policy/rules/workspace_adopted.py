"""No changes in a workspace that came from elsewhere, until a person adopts it."""

from kaiza.domain import errors
from kaiza.policy.case import Case


def check_workspace_adopted(case: Case) -> errors.SystemError | None:
    """Refuse until `kaiza adopt`."""
    if not case.foreign:
        return None
    return errors.SystemError.invariant_violation(
        "WORKSPACE_NOT_ADOPTED",
        error_code="SELF_AUDIT_FAILURE",
        human_message=(
            "This workspace's log was not written on this machine, so changes are refused. "
            "Reading works. Ask a person to run kaiza adopt."
        ),
    )
