"""The plan's file has no errors."""

from kaiza.domain import errors
from kaiza.domain.finding import ERROR, Finding
from kaiza.policy.case import Case

_MAX_FINDINGS = 10


def check_plan_sound(case: Case) -> errors.SystemError | None:
    """Refuse a plan that could not be parsed."""
    parsed = case.parsed
    if parsed is None or parsed.plan is not None:
        return None
    return errors.SystemError.tool_failure(
        "PLAN_ENFORCEMENT_FAILED",
        human_message="The plan has errors, so it is not valid. Call lint_plan, and ask a person to correct it.",
        cause={"rule": "plan_sound", "plan_id": case.plan_id, "findings": _summarize_errors(parsed.findings)},
    )


def _summarize_errors(findings: tuple[Finding, ...]) -> list[dict[str, object]]:
    found = [finding for finding in findings if finding.severity == ERROR][:_MAX_FINDINGS]
    return [{"rule": finding.rule, "line": finding.line, "column": finding.column} for finding in found]
