"""Approve a plan: exactly the content that the person was shown, by a record and, if they wish, by a signature."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kaiza.clock import current_timestamp
from kaiza.domain.plans import parser
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import APPROVED, DONE, REJECTED, REVOKED, STATUS_TRANSITIONS
from kaiza.domain.plans.status_edit import edit_fields
from kaiza.domain.refusal import RefusedError
from kaiza.queries.plan_review import diff_since_approval, review_plan
from kaiza.queries.workspaces import require_sound_log
from kaiza.render.terminal import escape
from kaiza.store import human_decisions
from kaiza.store.disk import state_dir
from kaiza.store.trust.signed_plans import require_project, sign_plan, write_signature
from kaiza.store.trust.ssh_keygen import SshKeygenError
from kaiza.store.workspace import Workspace

_ENDED = {REJECTED: "was rejected", REVOKED: "was revoked", DONE: "is done"}
_FILE_CHANGED = (
    "The plan's file changed in the meantime. Nothing was approved. Run the command again and review the new content."
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A plan as it is, and the content and hash that it will have once approved."""

    stored: StoredPlan
    content: bytes
    plan_hash: str
    review: dict[str, Any]
    """What the person is shown: the plan in full, the files that it matches, what changed since the last approval."""
    key: Path | None
    """The key to sign with; None for an approval that only this machine knows of."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The approval as it is recorded."""

    plan_id: str
    plan_hash: str
    signer: str | None
    """The trusted signer whose key signed it; None without a signature."""


def propose(workspace: Workspace, stored: StoredPlan, person: str, key: Path | None) -> Proposal:
    """The approval of one plan. Refused if the plan has errors, has ended or expired, or `require_ready` refuses."""
    require_ready(workspace, signs=key is not None)
    plan, now = stored.parsed.plan, current_timestamp()
    if plan is None:
        raise RefusedError(
            f"The plan has errors and cannot be approved. `kaiza plan lint {stored.plan_id}` lists them."
        )
    if plan.status != APPROVED and APPROVED not in STATUS_TRANSITIONS.get(plan.status, ()):
        raise RefusedError(f"This plan {_ENDED[plan.status]} and cannot be approved. Copy its text into a new plan.")
    if plan.is_expired(now):
        raise RefusedError(f"This plan expired on {plan.expires}. Set a later date, or write a new plan.")
    content, plan_hash = stored.content, plan.plan_hash
    # A file that says APPROVED keeps its bytes: they may be what a teammate committed.
    if plan.status != APPROVED:
        try:
            content = edit_fields(content, {"status": APPROVED, "approved_by": person, "approved_at": now})
        except ValueError as fault:
            raise RefusedError(f"The approval cannot be written: {fault}. Nothing was changed.") from fault
        plan_hash = parser.parse(content, stored.plan_id).plan_hash
    # Anyone can put a signature back after the approval was revoked, so it has to end by itself.
    if key is not None and plan.expires is None:
        raise RefusedError(
            'A signed plan needs a date. Nothing was approved. Add expires: "2030-01-31T18:00:00Z" to its head.'
        )
    review = review_plan(workspace, stored)
    # Compared with the content to be approved: the status line is then no difference.
    review["difference"] = diff_since_approval(workspace, stored.plan_id, content)
    return Proposal(stored, content, plan_hash, review, key)


def require_ready(workspace: Workspace, *, signs: bool) -> None:
    """Refused if no plan can be approved here: the log is not sound, or a signature is required or cannot count."""
    require_sound_log(workspace)
    if signs:
        try:
            require_project(state_dir.path_of(workspace.root))
        except SshKeygenError as problem:
            raise RefusedError(f"Nothing was approved: {escape(str(problem))}.") from problem
    elif workspace.settings.required_approval == "signature":
        raise RefusedError("Only a signature approves plans here. Add --sign.")


def decide(workspace: Workspace, proposal: Proposal, person: str) -> Decision:
    """Sign, record the approval and the seal, then write the files. Refused if the plan's file has changed."""
    plan_id, seen_hash = proposal.stored.plan_id, proposal.stored.parsed.plan_hash
    signature, signer = b"", None
    if proposal.key is not None:
        # Before anything is recorded: a key that is refused approves nothing. ssh-keygen may ask for its passphrase.
        state_path = state_dir.path_of(workspace.root)
        try:
            signature, signer = sign_plan(workspace.root, state_path, plan_id, proposal.content, proposal.key)
        except SshKeygenError as problem:
            raise RefusedError(
                f"Nothing was approved: {escape(str(problem))}. `kaiza trust signer list` lists the keys that count."
            ) from problem

    def require_unchanged() -> None:
        # Otherwise the person would answer for content that they did not see.
        stored = workspace.plans.read(plan_id)
        if stored is None or stored.parsed.plan_hash != seen_hash:
            raise RefusedError(_FILE_CHANGED)
        if plan_id in workspace.audit_state.withdrawn:
            # Here, where no server can record it once more after the approval. If that fails, the log still has it.
            workspace.seen_plans.lift_withdrawal(plan_id)

    touches = proposal.review["touches"]
    count = human_decisions.describe_count(None if touches["broken_off"] else touches["files"])
    detail = {"approved_by": person, **count, **({"signer": signer} if signer else {})}
    members = {"plan_id": plan_id, "plan_hash": proposal.plan_hash, "detail": {**detail, "seen_hash": seen_hash}}
    # Kept before it is approved: later reviews compare with the content that this hash names.
    human_decisions.store_plan_bytes(workspace, proposal.plan_hash, proposal.content)
    human_decisions.record_withdrawals(workspace)
    human_decisions.record_decision(workspace, "approve", person, require_unchanged, **members)
    human_decisions.record_plan_seal(
        workspace, plan_id, proposal.plan_hash, {"how": "signed", **detail} if signer else detail
    )

    workspace.seen_plans.lift_withdrawal(plan_id)
    if proposal.plan_hash != seen_hash and not workspace.plans.replace(plan_id, seen_hash, proposal.content):
        raise RefusedError(_FILE_CHANGED)
    if signer is not None:
        write_signature(workspace.root, plan_id, signature)
    return Decision(plan_id, proposal.plan_hash, signer)
