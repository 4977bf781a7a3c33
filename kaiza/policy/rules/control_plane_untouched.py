"""Plans, audit log, settings and `.git` are never changed through Kaiza, whatever a plan says."""

from kaiza.domain import errors
from kaiza.domain.audit.projection import NEW_WORKSPACE
from kaiza.domain.paths import protected_names
from kaiza.domain.paths.nested_names import NestedPath
from kaiza.policy.case import Case
from kaiza.policy.rules.readable import read_refusal


def check_control_plane_untouched(case: Case) -> errors.SystemError | None:
    """Refuse changes to the control plane and to files that may not be read."""
    for path in case.paths:
        if protected_names.is_control_plane(path):
            return errors.SystemError.invariant_violation(
                "CONTROL_PLANE_PROTECTED",
                error_code="POLICY_VIOLATION",
                human_message="This path controls what agents may do, so Kaiza never changes it. Leave it unchanged.",
                cause={"path": str(path)},
            )
    if case.nested:
        return _nested_refusal(case.nested[0])
    # Writing to an unreadable file is refused too: a diff or an undo would show its content.
    return read_refusal(case.hidden[0]) if case.hidden else None


def _nested_refusal(nested: NestedPath) -> errors.SystemError:
    cause = {"path": str(nested.path), "workspace": str(nested.workspace)}
    if not nested.is_new:
        message = "This path controls a workspace below this one, so Kaiza never changes it. Leave it unchanged."
    else:
        # Not locking: unlike the control plane of a workspace that exists, it may well be an honest mistake.
        cause["rule"] = NEW_WORKSPACE
        message = (
            "This file would make its directory a workspace of its own, with its own plans and log. "
            "Choose another path, or ask a person to run kaiza init there."
        )
    return errors.SystemError.invariant_violation(
        "CONTROL_PLANE_PROTECTED", error_code="POLICY_VIOLATION", human_message=message, cause=cause
    )
