"""Files that steer agents, editors or CI are changed only if the plan unlocks them by exact path."""

from kaiza.domain import errors
from kaiza.domain.plans import scope
from kaiza.policy.case import Case


def check_steering_files_unlocked(case: Case) -> errors.SystemError | None:
    """Refuse a steering file that the plan does not list under `scope.unlock`."""
    plan = case.plan
    operation_paths = (path for operation in case.requested_operations for path in operation.paths)
    for path in (*case.paths, *operation_paths):
        if plan is None or not scope.is_unlocked(plan, path):
            return errors.SystemError.invariant_violation(
                "CONTROL_PLANE_PROTECTED",
                error_code="POLICY_VIOLATION",
                human_message=(
                    "This file steers agents or editors, and the plan does not unlock it. "
                    "Save a plan that lists it under scope.unlock, and ask a person to approve it."
                ),
                cause={
                    "rule": "unlocked",
                    "path": str(path),
                    "plan_id": case.plan_id,
                    "unlocked": [str(unlocked) for unlocked in plan.scope.unlock][:10] if plan else [],
                },
            )
    return None
