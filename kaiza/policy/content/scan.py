"""Runs a plan's content rules over one file."""

from kaiza.domain.finding import Finding
from kaiza.domain.plans.plan import ContentPolicy
from kaiza.policy.content.lines import AddedLines
from kaiza.policy.content.rust import find_rust_violations
from kaiza.policy.content.secrets import find_secrets
from kaiza.policy.content.stubs import find_stubs


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
