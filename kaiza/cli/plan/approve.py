"""`kaiza plan approve`: approve exactly the content that the person was shown.

The decision is recorded before the file is changed. If the file changed while the question was open, nothing is
approved: the person would answer for content they did not see.
"""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import confirm_by_typing
from kaiza.cli.console.open_workspace import add_plan_id, open_workspace, require_plan
from kaiza.cli.plan import sign
from kaiza.cli.plan.sign import SignedApproval
from kaiza.clock import current_timestamp
from kaiza.domain.plans import parser as plan_parser
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import APPROVED, DONE, REJECTED, REVOKED, STATUS_TRANSITIONS
from kaiza.domain.plans.status_edit import edit_fields
from kaiza.queries.plan_review import diff_since_approval, review_plan
from kaiza.queries.workspaces import find_person_name, require_sound_log
from kaiza.render import plans
from kaiza.store import human_decisions
from kaiza.store.human_decisions import record_withdrawals
from kaiza.store.trust.signed_plans import write_signature
from kaiza.store.workspace import Workspace

_ENDED = {REJECTED: "was rejected", REVOKED: "was revoked", DONE: "is done"}
_FILE_CHANGED = (
    "The plan's file changed in the meantime. Nothing was approved. Run the command again and review the new content."
)


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("approve", help="review a plan and approve it")
    arguments.describe(
        parser,
        "Shows what the plan allows, the files it matches now and, if it was approved before, what has changed since. "
        "Asks you to type the plan's id, then sets status to APPROVED with your name and the time; a file that says "
        "so already is not touched. The approval is valid for exactly this content. Several plans are asked about one "
        "after the other.\n"
        "Exit status: 0 approved, 1 one or more not approved, 3 no terminal to ask at.",
        "kaiza plan approve PLAN-0007-rotate-tokens --as Ann\nkaiza plan approve PLAN-0007-rotate-tokens --sign",
        run=_run_approve,
    )
    add_plan_id(parser, nargs="+")
    sign.add_options(parser)
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


@dataclass(frozen=True, slots=True)
class ProposedApproval:
    """A plan as it is, and the content and hash that it will have once approved."""

    stored: StoredPlan
    content: bytes
    plan_hash: str
    person: str
    signed: SignedApproval | None = None


@dataclass(frozen=True, slots=True)
class Approver:
    """The person who approves, and the key they sign with."""

    name: str
    key: Path | None


def _run_approve(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        require_sound_log(workspace)
        plan_ids = list(dict.fromkeys(args.plan_id))
        approver = Approver(find_person_name(args.name), sign.choose_key(args, workspace))
        if len(plan_ids) == 1:
            approved = [_approve_plan(workspace, plan_ids[0], approver)]
        else:
            tried = [_try_to_approve(workspace, plan_id, approver) for plan_id in plan_ids]
            approved = [one for one in tried if one is not None]
    if args.json:
        documents = [_approval_members(one) for one in approved]
        output.print_json(documents[0] if len(plan_ids) == 1 else {"approved": documents})
    else:
        for one in approved:
            output.print_lines([f"Approved: plans/{one.stored.plan_id}.md", f"Hash: {one.plan_hash}"])
    return output.SUCCESS if len(approved) == len(plan_ids) else output.FAILURE


def _try_to_approve(workspace: Workspace, plan_id: str, approver: Approver) -> ProposedApproval | None:
    """Approve one of several plans; None if it was refused or declined, which does not stop the others."""
    try:
        return _approve_plan(workspace, plan_id, approver)
    except output.CommandError as stop:
        if stop.status != output.FAILURE:
            raise
        output.print_error(f"{plan_id}: {stop.message}")
        return None


def _approve_plan(workspace: Workspace, prefix: str, approver: Approver) -> ProposedApproval:
    stored = require_plan(workspace, prefix)
    plan_id, approval = stored.plan_id, _propose_approval(stored, approver.name)
    if approver.key is not None:
        sign.require_expiry(approval.stored.parsed.plan)
    review = review_plan(workspace, approval.stored, current_timestamp())
    # Compare with the content to be approved: the status line is then no difference.
    review["difference"] = diff_since_approval(workspace, plan_id, approval.content)
    # The whole id, also where its first characters named it: the person confirms which plan it is.
    if not confirm_by_typing(_confirmation_text(review, approval, approver.key), plan_id):
        raise output.CommandError("Cancelled. Nothing was approved.", output.FAILURE)
    if approver.key is not None:
        # Before anything is recorded: a key that is refused approves nothing.
        approval = replace(approval, signed=sign.sign_approval(workspace, plan_id, approval.content, approver.key))
    touches = review["touches"]
    _record_approval(workspace, approval, None if touches["broken_off"] else touches["files"])
    return approval


def _approval_members(approval: ProposedApproval) -> dict[str, str]:
    return {
        "plan_id": approval.stored.plan_id,
        "plan_hash": approval.plan_hash,
        "approved_by": approval.person,
        **({"signer": approval.signed.signer} if approval.signed else {}),
    }


def _propose_approval(stored: StoredPlan, name: str) -> ProposedApproval:
    plan = stored.parsed.plan
    if plan is None:
        raise output.CommandError(
            f"The plan has errors and cannot be approved. `kaiza plan lint {stored.plan_id}` lists them.",
            output.FAILURE,
        )
    if plan.status != APPROVED and APPROVED not in STATUS_TRANSITIONS.get(plan.status, ()):
        raise output.CommandError(
            f"This plan {_ENDED[plan.status]} and cannot be approved. Copy its text into a new plan.", output.FAILURE
        )
    if plan.is_expired(current_timestamp()):
        raise output.CommandError(
            f"This plan expired on {plan.expires}. Set a later date, or write a new plan.", output.FAILURE
        )
    if plan.status == APPROVED:
        # Its bytes stay: they may be what a teammate committed.
        return ProposedApproval(stored, stored.content, plan.plan_hash, name)
    fields = {"status": APPROVED, "approved_by": name, "approved_at": current_timestamp()}
    try:
        content = edit_fields(stored.content, fields)
    except ValueError as fault:
        raise output.CommandError(
            f"The approval cannot be written: {fault}. Nothing was changed.", output.FAILURE
        ) from fault
    return ProposedApproval(stored, content, plan_parser.parse(content, stored.plan_id).plan_hash, name)


def _confirmation_text(review: dict[str, Any], approval: ProposedApproval, key: Path | None) -> str:
    person = plans.escape_visibly(approval.person)
    agreement = f"You are approving as {person}. The plan's hash will be\n{approval.plan_hash}"
    signing = [f"It will be signed with {plans.escape_visibly(str(key))}"] if key else []
    return "\n".join([*plans.render_plan(review, None), "", agreement, *signing])


def _record_approval(workspace: Workspace, approval: ProposedApproval, files: int | None) -> None:
    """Record the decision and the seal, then write the file if it does not say APPROVED yet."""
    plan_id, reviewed_hash = approval.stored.plan_id, approval.stored.parsed.plan_hash
    detail: dict[str, Any] = {"approved_by": approval.person, **human_decisions.describe_count(files)}
    if approval.signed is not None:
        detail["signer"] = approval.signed.signer
    human_decisions.store_plan_bytes(workspace, approval.plan_hash, approval.content)

    def require_unchanged() -> None:
        stored = workspace.plans.read(plan_id)
        if stored is None or stored.parsed.plan_hash != reviewed_hash:
            raise output.CommandError(_FILE_CHANGED, output.FAILURE)
        if plan_id in workspace.audit_state.withdrawn:
            # Here, where no server can record it once more after the approval. If that fails, the log still has it.
            workspace.sights.lift_withdrawal(plan_id)

    members = {
        "plan_id": plan_id,
        "plan_hash": approval.plan_hash,
        "detail": {**detail, "seen_hash": reviewed_hash},
    }
    record_withdrawals(workspace)
    # Checked under the log's lock: no other process can append between the check and the record.
    human_decisions.record_decision(workspace, "approve", approval.person, require_unchanged, **members)
    human_decisions.record_plan_seal(
        workspace, plan_id, approval.plan_hash, {"how": "signed", **detail} if approval.signed else detail
    )
    workspace.sights.lift_withdrawal(plan_id)
    if approval.plan_hash != reviewed_hash and not workspace.plans.replace(plan_id, reviewed_hash, approval.content):
        raise output.CommandError(_FILE_CHANGED, output.FAILURE)
    if approval.signed is not None:
        write_signature(workspace.root, plan_id, approval.signed.signature)
