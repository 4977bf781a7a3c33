"""Each operation is allowed on its path by the scope of the plan, and of the phase."""

from kaiza.domain import errors
from kaiza.domain.plans import scope
from kaiza.policy.case import Case

# Patterns are the plan's text, and the cause is logged.
_MAX_PATTERN = 200
_DRAFT_ANOTHER = "draft another plan with save_plan"


def check_paths_in_scope(case: Case) -> errors.SystemError | None:
    """Refuse the first operation out of scope, with the patterns nearest to its path."""
    plan = case.plan
    if plan is None:
        return errors.SystemError.invariant_violation("PLAN_EXPECTED")
    violation = scope.find_violation(plan, plan.phase(case.arguments.get("phase_id")), case.requested_operations)
    if violation is None:
        return None
    # A dry run changes nothing, so it does not lock the role either.
    lock_notice = "" if case.arguments.get("dry_run") else " Changes are locked until write_report says what happened."
    return errors.SystemError.tool_failure(
        "PLAN_SCOPE_VIOLATION",
        human_message=f"{_violation_sentence(violation)}{lock_notice}",
        cause={
            "rule": "paths_in_scope",
            "plan_id": plan.plan_id,
            "phase_id": case.arguments.get("phase_id") if violation.only_phase else None,
            "operation": violation.requested.operation,
            "path": violation.path,
            "denied_by": violation.denied_by,
            "allowed_operations": list(violation.allowed_operations),
            "nearest": [pattern[:_MAX_PATTERN] for pattern in violation.nearest_patterns],
        },
    )


def _violation_sentence(violation: scope.ScopeViolation) -> str:
    level = "phase" if violation.only_phase else "plan"
    operation, allowed = violation.requested.operation, " and ".join(violation.allowed_operations)
    if violation.denied_by:
        return f"The {level} denies this path. Leave it unchanged, or {_DRAFT_ANOTHER}."
    if allowed:
        return f"The {level} allows {allowed} on this path, not {operation}. Do that, or {_DRAFT_ANOTHER}."
    if violation.nearest_patterns:
        return f"The {level} does not allow {operation} here. Use a path that matches nearest, or {_DRAFT_ANOTHER}."
    return f"The {level} does not allow {operation} at all. To continue, {_DRAFT_ANOTHER}."
