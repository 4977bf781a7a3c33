"""Evidence of a plan's approval outside the audit log: edits seen on this machine, git, signatures.

The store gathers it and the rule `plan_approved` judges it, together with seals and approvals from the log.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ApprovalEvidence:
    """Evidence for one plan file with exactly these bytes."""

    edited_here: bool = True
    """Whether the approving word was edited on this machine: the same text was seen here as a draft before."""
    came_by: str | None = None
    """How an approval that was not edited here arrived: a key of the rule's `ARRIVALS`."""
    withdrawn_here: str | None = None
    """The status with which an edit or a commit took the approval back, if `plan approve` has not lifted it since."""
    merged_ref: str | None = None
    """The trusted ref that contains the plan."""
    merge_problem: str | None = None
    """Why the plan is not merged, if a ref is trusted for this workspace."""
    signer: str | None = None
    """The principal of a valid signature by a trusted key."""
    signature_problem: str | None = None
    """Why there is no valid signature."""


NO_EVIDENCE = ApprovalEvidence(edited_here=False)
