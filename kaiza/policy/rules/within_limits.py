"""The plan's limits are not exceeded, across sessions, processes and restarts: usage is counted from the audit log."""

from kaiza.domain import errors
from kaiza.domain.plans import plan as limits
from kaiza.domain.plans.plan import Plan, PlanUsage
from kaiza.policy.case import Case


def check_limits_before(case: Case) -> errors.SystemError | None:
    """Refuse if the limit on refusals, operations or files would be exceeded."""
    plan, operations = case.plan, case.requested_operations
    if plan is None:
        return None
    usage = case.audit_state.usage.get(plan.plan_id) or PlanUsage()
    paths = [str(path) for operation in operations for path in operation.paths]
    return _limit_error(plan, limits.overrun_before(plan.limits, usage, paths, len(operations)))


def check_limits_after(case: Case) -> errors.SystemError | None:
    """Refuse if the limit on lines or bytes would be exceeded."""
    plan = case.plan
    if plan is None:
        return None
    usage = case.audit_state.usage.get(plan.plan_id) or PlanUsage()
    return _limit_error(plan, limits.overrun_after(plan.limits, usage, case.lines, case.bytes))


def _limit_error(plan: Plan, overrun: limits.Overrun | None) -> errors.SystemError | None:
    if overrun is None:
        return None
    left = max(0, overrun.allowed - overrun.used)
    return errors.SystemError.invariant_violation(
        "PLAN_LIMIT_REACHED",
        error_code="PLAN_SCOPE_VIOLATION",
        human_message=(
            f"The plan's limit on {overrun.limit} is reached: {left} of {overrun.allowed} left. "
            "Stay within it, or save a new plan and ask a person to approve it."
        ),
        cause={
            "rule": "within_limits",
            "plan_id": plan.plan_id,
            "limit": overrun.limit,
            "allowed": overrun.allowed,
            "used": overrun.used,
            "asked": overrun.asked,
        },
    )
