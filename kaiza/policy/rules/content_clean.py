"""Added lines hold no secret, and none of what the plan's content rules forbid."""

from kaiza.domain import errors
from kaiza.domain.finding import Finding
from kaiza.domain.plans.plan import ContentPolicy
from kaiza.policy.case import Case
from kaiza.policy.content.lines import AddedLines
from kaiza.policy.content.rust import find_rust_violations
from kaiza.policy.content.secrets import find_secrets
from kaiza.policy.content.stubs import find_stubs

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


def scan_file(policy: ContentPolicy, name: str, after: bytes, added: AddedLines = None) -> tuple[Finding, ...]:
    """Findings of the rules that the plan sets to refuse, in the added lines (all, if `added` is None)."""
    found: list[Finding] = []
    if policy.secrets:
        found += find_secrets(after, added)
    if policy.stubs:
        found += find_stubs(name, after, added)
    if policy.rust:
        found += find_rust_violations(name, after, added)
    return tuple(sorted(found))
