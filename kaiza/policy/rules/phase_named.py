"""Where a plan has phases, each change says which one it belongs to."""

from kaiza.domain import errors
from kaiza.policy.case import Case


def check_phase_named(case: Case) -> errors.SystemError | None:
    """Refuse a missing phase, and one that the plan does not have."""
    plan = case.parsed.plan if case.parsed else None
    asked = case.arguments.get("phase_id")
    if plan is None or (asked is None and not plan.phases) or plan.phase(asked):
        return None
    known = [phase.phase_id for phase in plan.phases]
    if asked is None:
        return errors.SystemError.tool_failure(
            "MISSING_REQUIRED_FIELD",
            human_message="The plan has phases. Pass the phase_id of the one that this change belongs to.",
            cause={"rule": "phase_named", "missing": ["phase_id"], "plan_id": plan.plan_id, "phases": known},
        )
    return errors.SystemError.tool_failure(
        "PLAN_SCOPE_VIOLATION",
        human_message="The plan has no such phase. Pass the phase_id of one that it has, or none if it has none.",
        cause={"rule": "phase_named", "phase_id": str(asked)[:64], "plan_id": plan.plan_id, "phases": known},
    )
