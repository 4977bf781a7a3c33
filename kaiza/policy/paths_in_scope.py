"""Nothing happens to a path that the plan, and the phase, do not name for just that."""

from kaiza.domain import errors, scope
from kaiza.policy.case import Case

_LONGEST = 200
_ANOTHER = "draft another plan with save_plan, in an ANTIGRAVITY session"


def paths_in_scope(case: Case) -> errors.SystemError | None:
    """Refuse the first thing that is out of scope, and tell what comes nearest to it."""
    plan = case.reading.plan if case.reading else None
    if plan is None:
        return errors.SystemError.invariant_violation("PLAN_EXPECTED")
    why = scope.refused(plan, plan.phase(case.arguments.get("phase_id")), case.wanted)
    if why is None:
        return None
    return errors.SystemError.tool_failure(
        "PLAN_SCOPE_VIOLATION",
        human_message=_sentence(why) + _afterwards(case),
        cause={
            "rule": "paths_in_scope",
            "plan_id": plan.plan_id,
            "phase_id": case.arguments.get("phase_id") if why.only_phase else None,
            "operation": why.wanted.operation,
            "path": why.path,
            "denied_by": why.denied_by,
            "allowed_operations": list(why.instead),
            "nearest": [pattern[:_LONGEST] for pattern in why.nearest],
        },
    )


def _sentence(why: scope.Refused) -> str:
    whose = "phase" if why.only_phase else "plan"
    operation = why.wanted.operation
    if why.denied_by:
        return f"The {whose} denies this path. Leave it alone, or {_ANOTHER}."
    if why.instead:
        return f"The {whose} allows {' and '.join(why.instead)} here, not {operation}. Do that, or {_ANOTHER}."
    if why.nearest:
        return f"The {whose} does not allow {operation} here. Keep to the patterns in nearest, or {_ANOTHER}."
    return f"The {whose} allows no {operation} at all. To go on, {_ANOTHER}."


def _afterwards(case: Case) -> str:
    """A trial locks nothing; what was meant does, and is told how to go on."""
    return "" if case.arguments.get("dry_run") else " Changes are locked until write_report says what happened."
