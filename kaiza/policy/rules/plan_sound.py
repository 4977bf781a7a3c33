"""The plan that the call names by its hash exists, and its file has no errors."""

from kaiza.domain import errors
from kaiza.domain.finding import ERROR
from kaiza.policy.case import Case

_MAX_FINDINGS = 10


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


def check_plan_sound(case: Case) -> errors.SystemError | None:
    """Refuse a plan that could not be parsed."""
    if case.parsed is None or case.plan is not None:
        return None
    found = [finding for finding in case.parsed.findings if finding.severity == ERROR][:_MAX_FINDINGS]
    # Positions only: the cause is logged, and the messages quote the plan's text.
    positions = [{"rule": finding.rule, "line": finding.line, "column": finding.column} for finding in found]
    return errors.SystemError.tool_failure(
        "PLAN_ENFORCEMENT_FAILED",
        human_message="The plan has errors, so it is not valid. Call lint_plan, and ask a person to correct it.",
        cause={"rule": "plan_sound", "plan_id": case.plan_id, "findings": positions},
    )
