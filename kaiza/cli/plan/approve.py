"""`kaiza plan approve`: a person sees what a plan touches, and approves just the bytes whose hash they were shown."""

import argparse
from dataclasses import dataclass
from typing import Any

from kaiza.cli.console import arguments as options
from kaiza.cli.console import open_workspace as standing
from kaiza.cli.console import operator as person
from kaiza.cli.console import output as say
from kaiza.cli.console import plan_argument as plan_id
from kaiza.cli.console.confirm import confirm_by_typing
from kaiza.cli.plan import review as plan_sight
from kaiza.domain.plans import parser as lint
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import APPROVED, STATUS_TRANSITIONS
from kaiza.domain.plans.status_edit import edit_fields
from kaiza.render import plans
from kaiza.store import approved_plans as approved_bytes
from kaiza.store import human_decisions as persons_word
from kaiza.store.ground import Workspace

CHANGED_MEANWHILE = "The plan's file changed meanwhile. Nothing was approved; run the command again and look once more."


def add(commands: options.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("approve", help="see what a plan touches, and approve it", allow_abbrev=False)
    options.describe(
        parser,
        "Shows what the plan allows, which files that touches now, and where it was approved before, what changed;\n"
        "then asks for the plan's id, typed at the terminal. Changes the one word and fills in who and when; the\n"
        "hash that the file will have is shown and recorded, and no other bytes count.\n"
        "Exit status: 0 approved, 1 not approved, 3 no terminal to ask at.",
        "kaiza plan approve PLAN-0007-rotate-tokens --as Ann",
        run=_run_approve,
    )
    plan_id.add_argument(parser)
    options.add_operator(parser)
    options.add_workspace(parser)
    options.add_json(parser)


@dataclass(frozen=True, slots=True)
class ProposedApproval:
    """What a person is asked to agree to: a plan as it is, and the bytes it will have."""

    stored: StoredPlan
    content: bytes
    plan_hash: str
    person: str


def _run_approve(args: argparse.Namespace) -> int:
    with standing.open_workspace(args) as ground:
        standing.require_sound_log(ground)
        word = _propose_approval(plan_id.require_plan(ground, args.plan_id), person.resolve_name(args.name))
        told = plan_sight.build_document(ground, word.stored, persons_word.current_timestamp())
        told["difference"] = plan_sight.diff_since_approval(ground, args.plan_id, word.content)
        if not confirm_by_typing(_confirmation_text(told, word), args.plan_id):
            raise say.CommandError("Nothing was approved, and nothing has changed.", say.FAILURE)
        _record_approval(ground, word, told["touches"]["files"])
    if args.json:
        say.print_json({"plan_id": args.plan_id, "plan_hash": word.plan_hash, "approved_by": word.person})
    else:
        say.print_lines([f"Approved. {word.plan_hash}  plans/{args.plan_id}.md"])
    return say.SUCCESS


def _propose_approval(stored: StoredPlan, name: str) -> ProposedApproval:
    """The bytes that the file will have."""
    plan = stored.parsed.plan
    if plan is None:
        raise say.CommandError(
            f"The plan has errors and counts for nothing. See kaiza plan lint {stored.plan_id}.", say.FAILURE
        )
    if plan.status != APPROVED and APPROVED not in STATUS_TRANSITIONS.get(plan.status, ()):
        raise say.CommandError(
            f"The plan is {plan.status}, and that is an end. Put its text into a new plan.", say.FAILURE
        )
    if plan.is_expired(persons_word.current_timestamp()):
        raise say.CommandError(
            f"The plan expired on {plan.expires}. Give it a later date, or write a new plan.", say.FAILURE
        )
    words = {"status": APPROVED, "approved_by": name, "approved_at": persons_word.current_timestamp()}
    try:
        content = edit_fields(stored.content, words)
    except ValueError as fault:
        raise say.CommandError(f"The plan cannot say so: {fault}. Nothing has changed.", say.FAILURE) from fault
    return ProposedApproval(stored, content, lint.parse(content, stored.plan_id).plan_hash, name)


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
    approved_bytes.store_bytes(ground, word.plan_hash, word.content)

    def unchanged() -> None:
        stored = ground.plans.read(plan_id)
        if stored is None or stored.parsed.plan_hash != seen:
            raise say.CommandError(CHANGED_MEANWHILE, say.FAILURE)

    members = {"plan_id": plan_id, "plan_hash": word.plan_hash, "detail": {**detail, "seen_hash": seen}}
    persons_word.record_decision(ground, "approve", word.person, unchanged, **members)
    persons_word.record_plan_seal(ground, plan_id, word.plan_hash, detail)
    if not ground.plans.replace(plan_id, seen, word.content):
        raise say.CommandError(CHANGED_MEANWHILE, say.FAILURE)
