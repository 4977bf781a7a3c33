"""What steers agents, editors and automation is changed only where a person saw the very path and agreed."""

from kaiza.domain import errors
from kaiza.domain.plans import scope
from kaiza.policy.case import Case


def check_steering_files_unlocked(case: Case) -> errors.SystemError | None:
    """Refuse a protected path that the plan does not name under `unlock`."""
    plan = case.parsed.plan if case.parsed else None
    for path in (*case.paths, *(path for one in case.requested_operations for path in one.paths)):
        if plan is None or not scope.is_unlocked(plan, path):
            return errors.SystemError.invariant_violation(
                "CONTROL_PLANE_PROTECTED",
                error_code="POLICY_VIOLATION",
                human_message=(
                    "This path steers agents or editors, and the plan does not unlock it. "
                    "Save a plan that names it under scope.unlock, and ask a person to approve it."
                ),
                cause={
                    "rule": "unlocked",
                    "path": str(path),
                    "plan_id": case.plan_id,
                    "unlocked": [str(one) for one in plan.scope.unlock][:10] if plan else [],
                },
            )
    return None
