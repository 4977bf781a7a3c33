"""Gathers the evidence for a plan's approval: what was seen on this machine, git and signatures."""

from pathlib import Path

from kaiza.domain.plans.approval import ApprovalEvidence
from kaiza.domain.plans.parser import StoredPlan
from kaiza.store.trust.merged_plans import find_merge
from kaiza.store.trust.seen_plans import SeenPlans
from kaiza.store.trust.signed_plans import verify_signature


def gather_evidence(root: str, state_path: Path, stored: StoredPlan, seen: SeenPlans) -> ApprovalEvidence:
    """The evidence for a plan's file as it is now. May start processes, so it is not called under the log's lock."""
    seen.decide(stored)
    merge, signature = find_merge(root, state_path, stored), verify_signature(root, state_path, stored)
    evidence = ApprovalEvidence(
        merged_ref=merge.ref,
        merge_problem=merge.problem,
        signer=signature.signer,
        signature_problem=signature.problem,
    )
    return seen.recall(stored, evidence)
