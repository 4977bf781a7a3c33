"""Nothing happens to a path that the plan, and the phase, do not name for just that."""

from kaiza.domain import errors
from kaiza.domain.plans import scope
from kaiza.policy.case import Case

_MAX_PATTERN = 200
_DRAFT_ANOTHER = "draft another plan with save_plan, in an ANTIGRAVITY session"


def check_paths_in_scope(case: Case) -> errors.SystemError | None:
    """Refuse the first thing that is out of scope, and tell what comes nearest to it."""
    plan = case.parsed.plan if case.parsed else None
    if plan is None:
        return errors.SystemError.invariant_violation("PLAN_EXPECTED")
    why = scope.find_violation(plan, plan.phase(case.arguments.get("phase_id")), case.requested_operations)
    if why is None:
        return None
    return errors.SystemError.tool_failure(
        "PLAN_SCOPE_VIOLATION",
        human_message=_violation_sentence(why) + _lock_notice(case),
        cause={
            "rule": "paths_in_scope",
            "plan_id": plan.plan_id,
            "phase_id": case.arguments.get("phase_id") if why.only_phase else None,
            "operation": why.requested.operation,
            "path": why.path,
            "denied_by": why.denied_by,
            "allowed_operations": list(why.allowed_operations),
            "nearest": [pattern[:_MAX_PATTERN] for pattern in why.nearest_patterns],
        },
    )


def _violation_sentence(why: scope.ScopeViolation) -> str:
    whose = "phase" if why.only_phase else "plan"
    operation = why.requested.operation
    if why.denied_by:
        return f"The {whose} denies this path. Leave it alone, or {_DRAFT_ANOTHER}."
    if why.allowed_operations:
        return f"The {whose} allows {' and '.join(why.allowed_operations)} here, not {operation}. Do that, or {_DRAFT_ANOTHER}."
    if why.nearest_patterns:
        return f"The {whose} does not allow {operation} here. Keep to the patterns in nearest, or {_DRAFT_ANOTHER}."
    return f"The {whose} allows no {operation} at all. To go on, {_DRAFT_ANOTHER}."


def _lock_notice(case: Case) -> str:
    """A trial locks nothing; what was meant does, and is told how to go on."""
    return "" if case.arguments.get("dry_run") else " Changes are locked until write_report says what happened."
