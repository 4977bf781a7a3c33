"""`kaiza plan approve`: a person sees what a plan touches, and approves just the bytes whose hash they were shown."""

import argparse
from dataclasses import dataclass
from typing import Any

from kaiza.cli.console import arguments, open_workspace, output
from kaiza.cli.console.confirm import confirm_by_typing
from kaiza.cli.plan import review
from kaiza.domain.plans import parser
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import APPROVED, STATUS_TRANSITIONS
from kaiza.domain.plans.status_edit import edit_fields
from kaiza.render import plans
from kaiza.store import human_decisions
from kaiza.store.workspace import Workspace

CHANGED_MEANWHILE = "The plan's file changed meanwhile. Nothing was approved; run the command again and look once more."


def add(commands: arguments.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("approve", help="see what a plan touches, and approve it", allow_abbrev=False)
    arguments.describe(
        parser,
        "Shows what the plan allows, which files that touches now, and where it was approved before, what changed;\n"
        "then asks for the plan's id, typed at the terminal. Changes the one word and fills in who and when; the\n"
        "hash that the file will have is shown and recorded, and no other bytes count.\n"
        "Exit status: 0 approved, 1 not approved, 3 no terminal to ask at.",
        "kaiza plan approve PLAN-0007-rotate-tokens --as Ann",
        run=_run_approve,
    )
    arguments.add_argument(parser)
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


@dataclass(frozen=True, slots=True)
class ProposedApproval:
    """What a person is asked to agree to: a plan as it is, and the bytes it will have."""

    stored: StoredPlan
    content: bytes
    plan_hash: str
    person: str


def _run_approve(args: argparse.Namespace) -> int:
    with open_workspace.open_workspace(args) as ground:
        open_workspace.require_sound_log(ground)
        word = _propose_approval(arguments.require_plan(ground, args.plan_id), arguments.resolve_name(args.name))
        told = review.build_document(ground, word.stored, human_decisions.current_timestamp())
        told["difference"] = review.diff_since_approval(ground, args.plan_id, word.content)
        if not confirm_by_typing(_confirmation_text(told, word), args.plan_id):
            raise output.CommandError("Nothing was approved, and nothing has changed.", output.FAILURE)
        _record_approval(ground, word, told["touches"]["files"])
    if args.json:
        output.print_json({"plan_id": args.plan_id, "plan_hash": word.plan_hash, "approved_by": word.person})
    else:
        output.print_lines([f"Approved. {word.plan_hash}  plans/{args.plan_id}.md"])
    return output.SUCCESS


def _propose_approval(stored: StoredPlan, name: str) -> ProposedApproval:
    """The bytes that the file will have."""
    plan = stored.parsed.plan
    if plan is None:
        raise output.CommandError(
            f"The plan has errors and counts for nothing. See kaiza plan lint {stored.plan_id}.", output.FAILURE
        )
    if plan.status != APPROVED and APPROVED not in STATUS_TRANSITIONS.get(plan.status, ()):
        raise output.CommandError(
            f"The plan is {plan.status}, and that is an end. Put its text into a new plan.", output.FAILURE
        )
    if plan.is_expired(human_decisions.current_timestamp()):
        raise output.CommandError(
            f"The plan expired on {plan.expires}. Give it a later date, or write a new plan.", output.FAILURE
        )
    words = {"status": APPROVED, "approved_by": name, "approved_at": human_decisions.current_timestamp()}
    try:
        content = edit_fields(stored.content, words)
    except ValueError as fault:
        raise output.CommandError(f"The plan cannot say so: {fault}. Nothing has changed.", output.FAILURE) from fault
    return ProposedApproval(stored, content, parser.parse(content, stored.plan_id).plan_hash, name)


def _confirmation_text(told: dict[str, Any], word: ProposedApproval) -> str:
    """What the person is shown before they give their word."""
    agreed = (
        f"With your word it is approved by {plans.escape_visibly(word.person)}, and its hash will be\n{word.plan_hash}"
    )
    return "\n".join([*plans.render_plan(told, None), "", agreed])


def _record_approval(ground: Workspace, word: ProposedApproval, files: int) -> None:
    """The word is recorded before it is written; what nobody saw is neither."""
    plan_id, seen = word.stored.plan_id, word.stored.parsed.plan_hash
    detail = {"approved_by": word.person, "files": files}
    human_decisions.store_bytes(ground, word.plan_hash, word.content)

    def unchanged() -> None:
        stored = ground.plans.read(plan_id)
        if stored is None or stored.parsed.plan_hash != seen:
            raise output.CommandError(CHANGED_MEANWHILE, output.FAILURE)

    members = {"plan_id": plan_id, "plan_hash": word.plan_hash, "detail": {**detail, "seen_hash": seen}}
    human_decisions.record_decision(ground, "approve", word.person, unchanged, **members)
    human_decisions.record_plan_seal(ground, plan_id, word.plan_hash, detail)
    if not ground.plans.replace(plan_id, seen, word.content):
        raise output.CommandError(CHANGED_MEANWHILE, output.FAILURE)
