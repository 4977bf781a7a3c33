"""A plan's limits hold over all sessions, processes and restarts, because the record counts what was used."""

from kaiza.domain import errors, limits
from kaiza.domain.plan import Plan
from kaiza.domain.plan_usage import Usage
from kaiza.policy.case import Case


def limits_before(case: Case) -> errors.SystemError | None:
    """Refuse what would pass a limit on refusals, operations or files."""
    plan = case.reading.plan if case.reading else None
    if plan is None:
        return None
    paths = [str(path) for one in case.wanted for path in one.paths]
    return _refused(plan, limits.before(plan.limits, _usage(case, plan), paths, len(case.wanted)))


def limits_after(case: Case) -> errors.SystemError | None:
    """Refuse what would pass a limit on lines or bytes, now that the result is known."""
    plan = case.reading.plan if case.reading else None
    if plan is None:
        return None
    return _refused(plan, limits.after(plan.limits, _usage(case, plan), case.lines, case.bytes))


def _usage(case: Case, plan: Plan) -> Usage:
    return case.facts.usage.get(plan.plan_id) or Usage()


def _refused(plan: Plan, overrun: limits.Overrun | None) -> errors.SystemError | None:
    if overrun is None:
        return None
    left = max(0, overrun.allowed - overrun.used)
    return errors.SystemError.invariant_violation(
        "PLAN_LIMIT_REACHED",
        error_code="PLAN_SCOPE_VIOLATION",
        human_message=(
            f"The plan's limit on {overrun.limit} is reached: {left} of {overrun.allowed} left. "
            "Keep within it, or save a new plan and ask a person to approve it."
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
