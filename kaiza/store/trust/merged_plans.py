"""Plans approved by merge: the plan's bytes are the blob at its path in a ref that a person trusts."""

from dataclasses import dataclass
from pathlib import Path

from kaiza.domain.plans.parser import StoredPlan


@dataclass(frozen=True, slots=True)
class MergeStatus:
    """The trusted ref that contains a plan, or why none does; both None if no ref is trusted for the workspace."""

    ref: str | None = None
    problem: str | None = None


def find_merge(root: str, state_path: Path, stored: StoredPlan) -> MergeStatus:
    """Whether a plan is merged into a trusted ref. Starts git, so it is not called under the log's lock."""
    del root, state_path, stored
    return MergeStatus()
