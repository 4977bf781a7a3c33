"""The plan that the call names by its hash exists."""

from kaiza.domain import errors
from kaiza.policy.case import Case


def check_plan_found(case: Case) -> errors.SystemError | None:
    """Refuse a hash that no plan has."""
    if case.parsed is not None and case.plan_id is not None:
        return None
    return errors.SystemError.tool_failure(
        "PLAN_NOT_FOUND",
        human_message=(
            "No plan has this hash. Call list_plans and pass the plan_hash of an approved plan. "
            "None that fits? Draft one with save_plan."
        ),
        cause={"rule": "plan_found", "plan_hash": case.arguments.get("plan_hash"), "plan_id": case.plan_id},
    )
