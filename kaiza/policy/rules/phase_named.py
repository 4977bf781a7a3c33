"""Changes under a plan with phases name the phase they belong to."""

from kaiza.domain import errors
from kaiza.policy.case import Case


def check_phase_named(case: Case) -> errors.SystemError | None:
    """Refuse a missing or unknown phase."""
    plan = case.plan
    phase_id = case.arguments.get("phase_id")
    if plan is None or (phase_id is None and not plan.phases) or plan.phase(phase_id):
        return None
    known = [phase.phase_id for phase in plan.phases]
    if phase_id is None:
        return errors.SystemError.tool_failure(
            "MISSING_REQUIRED_FIELD",
            human_message="The plan has phases. Pass the phase_id of the phase that this change belongs to.",
            cause={"rule": "phase_named", "missing": ["phase_id"], "plan_id": plan.plan_id, "phases": known},
        )
    return errors.SystemError.tool_failure(
        "PLAN_SCOPE_VIOLATION",
        human_message="The plan has no such phase. Pass a phase_id listed in phases, or none if the list is empty.",
        cause={"rule": "phase_named", "phase_id": str(phase_id)[:64], "plan_id": plan.plan_id, "phases": known},
    )
