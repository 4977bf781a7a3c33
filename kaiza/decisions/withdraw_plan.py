"""Withdraw a plan: reject a draft, or revoke an approval. In force from the next call on."""

from dataclasses import dataclass

from kaiza.domain.plans import parser
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import REJECTED, STATUS_TRANSITIONS
from kaiza.domain.plans.status_edit import edit_fields
from kaiza.domain.refusal import RefusedError
from kaiza.store import human_decisions
from kaiza.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Proposal:
    """A plan as it is, and the status, content and hash that it will have."""

    stored: StoredPlan
    status: str
    content: bytes
    plan_hash: str
    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The plan allows nothing any more."""

    plan_id: str
    status: str
    plan_hash: str


def propose(_workspace: Workspace, stored: StoredPlan, status: str, reason: str) -> Proposal:
    """The end of a plan, as REJECTED or REVOKED. Refused if the plan has errors or its status does not allow it."""
    plan = stored.parsed.plan
    if plan is None:
        raise RefusedError(
            "The plan has errors, so it allows nothing. Nothing was changed. "
            f"`kaiza plan lint {stored.plan_id}` lists the errors."
        )
    if status not in STATUS_TRANSITIONS.get(plan.status, ()):
        raise RefusedError(f"The plan is {plan.status} and cannot become {status}. Nothing was changed.")
    content = edit_fields(stored.content, {"status": status})
    return Proposal(stored, status, content, parser.parse(content, stored.plan_id).plan_hash, reason)


def decide(workspace: Workspace, proposal: Proposal, person: str) -> Decision:
    """Record the withdrawal, then write the file. Not checked again: a withdrawal only restricts.

    The record alone withdraws the plan. Refused if the file changed since, which then keeps its content.
    """
    plan_id, seen_hash = proposal.stored.plan_id, proposal.stored.parsed.plan_hash
    action = "reject" if proposal.status == REJECTED else "revoke"
    detail = {"reason": proposal.reason, "seen_hash": seen_hash}
    human_decisions.record_decision(
        workspace, action, person, plan_id=plan_id, plan_hash=proposal.plan_hash, detail=detail
    )
    if not workspace.plans.replace(plan_id, seen_hash, proposal.content):
        raise RefusedError(
            "The plan's file changed in the meantime. The plan allows nothing now, because your decision is "
            "recorded, but its file was not updated. Run the command again."
        )
    return Decision(plan_id, proposal.status, proposal.plan_hash)
