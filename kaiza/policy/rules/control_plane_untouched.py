"""What governs the agent is out of the agent's reach, whatever a plan says."""

from kaiza.domain import errors
from kaiza.domain.paths import protected_names
from kaiza.policy.case import Case
from kaiza.policy.rules.readable import read_refusal


def check_control_plane_untouched(case: Case) -> errors.SystemError | None:
    """Refuse a change of the control plane, and of what may not be read."""
    for path in case.paths:
        if protected_names.is_control_plane(path):
            return errors.SystemError.invariant_violation(
                "CONTROL_PLANE_PROTECTED",
                error_code="POLICY_VIOLATION",
                human_message="This path governs the agent and is never changed through Kaiza. Leave it alone.",
                cause={"path": str(path)},
            )
    return read_refusal(case.hidden[0]) if case.hidden else None
