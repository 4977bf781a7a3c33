"""What a plan's content rules find in what is added to one file."""

from collections.abc import Container

from kaiza.domain.finding import Finding
from kaiza.domain.plan import Policy
from kaiza.policy.content_rust import rust
from kaiza.policy.content_secrets import secrets
from kaiza.policy.content_stubs import stubs


def look(policy: Policy, name: str, after: bytes, added: Container[int] | None = None) -> tuple[Finding, ...]:
    """The findings of every rule that refuses; `added` holds line numbers from 0, None means that all are new."""
    found: list[Finding] = []
    if policy.secrets:
        found += secrets(after, added)
    if policy.stubs:
        found += stubs(name, after, added)
    if policy.rust:
        found += rust(name, after, added)
    return tuple(sorted(found))
