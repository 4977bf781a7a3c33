"""What is added holds no secret, and none of what the plan asked to be kept out."""

from kaiza.domain import errors
from kaiza.policy.case import Case

_MAX_FINDINGS = 20


def check_content_clean(case: Case) -> errors.SystemError | None:
    """Refuse with every finding's place; the content itself is never told."""
    if not case.content:
        return None
    path, finding = case.content[0]
    rust_only = all(one.rule.startswith("rust-") for _, one in case.content)
    return errors.SystemError.tool_failure(
        "RUST_POLICY_VIOLATION" if rust_only else "POLICY_VIOLATION",
        human_message=f"{finding.message}. {finding.fix}, then try again.",
        cause={
            "rule": finding.rule,
            "path": str(path),
            "line": finding.line,
            "column": finding.column,
            "count": len(case.content),
            "findings": [
                {"rule": one.rule, "path": str(where), "line": one.line, "column": one.column}
                for where, one in case.content[:_MAX_FINDINGS]
            ],
        },
    )
