"""Nothing happens to a path that the plan, and the phase, do not name for just that."""

from kaiza.domain import errors, scope
from kaiza.policy.case import Case

_LONGEST = 200


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
        human_message=_sentence(why),
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
        return f"The {whose} denies this path. Leave it alone, or save a new plan and ask a person to approve it."
    if why.instead:
        allowed = " and ".join(why.instead)
        return f"The {whose} allows {allowed} here, not {operation}. Do that, or save a new plan that allows it."
    if why.nearest:
        return f"The {whose} does not allow {operation} here. Keep to the patterns in nearest, or save a new plan."
    return f"The {whose} allows no {operation} at all. Save a new plan that does, and ask a person to approve it."
