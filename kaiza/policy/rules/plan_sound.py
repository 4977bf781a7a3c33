"""A plan with an error counts for nothing."""

from kaiza.domain import errors
from kaiza.domain.finding import ERROR, Finding
from kaiza.policy.case import Case

_MAX_FINDINGS = 10


def check_plan_sound(case: Case) -> errors.SystemError | None:
    """Refuse a plan that cannot be read strictly, unless its changed bytes are the greater fault."""
    reading = case.parsed
    if reading is None or reading.plan is not None:
        return None
    return errors.SystemError.tool_failure(
        "PLAN_ENFORCEMENT_FAILED",
        human_message="The plan has errors, so it allows nothing. Call lint_plan, and ask a person to mend it.",
        cause={"rule": "plan_sound", "plan_id": case.plan_id, "findings": summarize_findings(reading.findings)},
    )


def summarize_findings(findings: tuple[Finding, ...]) -> list[dict[str, object]]:
    """The first errors, without their sentences."""
    first = [finding for finding in findings if finding.severity == ERROR][:_MAX_FINDINGS]
    return [{"rule": finding.rule, "line": finding.line, "column": finding.column} for finding in first]
