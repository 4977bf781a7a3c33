"""Added lines hold no secret, and none of what the plan's content rules forbid."""

from kaiza.domain import errors
from kaiza.policy.case import Case

_MAX_FINDINGS = 20


def check_content_clean(case: Case) -> errors.SystemError | None:
    """Refuse with the position of each finding."""
    if not case.content:
        return None
    path, finding = case.content[0]
    rust_only = all(each.rule.startswith("rust-") for _, each in case.content)
    return errors.SystemError.tool_failure(
        "RUST_POLICY_VIOLATION" if rust_only else "POLICY_VIOLATION",
        human_message=f"{finding.message}. {finding.fix}, then try again.",
        # Positions only: the cause is logged, and the matched text may be a secret.
        cause={
            "rule": finding.rule,
            "path": str(path),
            "line": finding.line,
            "column": finding.column,
            "count": len(case.content),
            "findings": [
                {"rule": each.rule, "path": str(found_in), "line": each.line, "column": each.column}
                for found_in, each in case.content[:_MAX_FINDINGS]
            ],
        },
    )
