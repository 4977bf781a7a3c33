"""`kaiza plan approve`: show plans, ask for each, and approve those that the person confirms."""

import argparse
from pathlib import Path

from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import confirm
from kaiza.cli.console.open_workspace import add_plan_id, open_workspace, require_plan
from kaiza.decisions import approve_plan
from kaiza.domain.refusal import RefusedError, UndeterminedError
from kaiza.queries.workspaces import Workspace, find_person_name
from kaiza.render import plans

_KEY_NAMES = ("id_ed25519", "id_ed25519_sk")


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("approve", help="review a plan and approve it")
    arguments.describe(
        parser,
        "Shows what the plan allows, the files it matches now and, if it was approved before, what has changed since. "
        "Asks you to confirm at the terminal, then sets status to APPROVED with your name and the time; a file that "
        "says so already is not touched. The approval is valid for exactly this content. Several plans are asked about "
        "one after the other.\n"
        "Exit status: 0 approved, 1 one or more not approved, 3 no terminal to ask at.",
        "kaiza plan approve PLAN-0007-rotate-tokens --as Ann\nkaiza plan approve PLAN-0007-rotate-tokens --sign",
        run=_run_approve,
    )
    add_plan_id(parser, nargs="+")
    parser.add_argument(
        "--sign", action="store_true", help="sign the approved plan with your SSH key, in plans/ID.md.sig"
    )
    parser.add_argument(
        "--key",
        metavar="FILE",
        help="the key to sign with: private, or public with the private one in an agent (default: "
        "~/.ssh/id_ed25519 or id_ed25519_sk, whichever exists alone)",
    )
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_approve(args: argparse.Namespace) -> int:
    if args.key is not None and not args.sign:
        raise output.CommandError("--key is the key to sign with. Add --sign.", output.USAGE_ERROR)
    plan_ids = list(dict.fromkeys(args.plan_id))
    approved: list[approve_plan.Decision] = []
    with open_workspace(args) as workspace:
        # Also here, so that what holds for every plan is said once and not for each.
        approve_plan.require_ready(workspace, signs=args.sign)
        person = find_person_name(args.name)
        key = find_key(args.key, "Nothing was approved.") if args.sign else None
        for plan_id in plan_ids:
            try:
                approved.append(_approve(workspace, plan_id, person, key))
            except RefusedError as refusal:
                if len(plan_ids) == 1 or isinstance(refusal, UndeterminedError):
                    raise
                # What is wrong with one of several plans does not stop the others; a missing terminal does.
                output.print_error(f"{plan_id}: {refusal.message}")
    if args.json:
        documents = [
            {
                "plan_id": one.plan_id,
                "plan_hash": one.plan_hash,
                "approved_by": person,
                **({"signer": one.signer} if one.signer else {}),
            }
            for one in approved
        ]
        output.print_json(documents[0] if len(plan_ids) == 1 else {"approved": documents})
    else:
        for one in approved:
            output.print_lines([f"Approved: plans/{one.plan_id}.md", f"Hash: {one.plan_hash}"])
    return output.SUCCESS if len(approved) == len(plan_ids) else output.FAILURE


def _approve(workspace: Workspace, prefix: str, person: str, key: Path | None) -> approve_plan.Decision:
    stored = require_plan(workspace, prefix)
    proposal = approve_plan.propose(workspace, stored, person, key)
    facts = [
        *plans.render_plan(proposal.review, None),
        "",
        f"You are approving as {plans.escape_visibly(person)}. The plan's hash will be\n{proposal.plan_hash}",
        *([f"It will be signed with {plans.escape_visibly(str(key))}"] if key else []),
    ]
    # The whole id, also where its first characters named it: the person confirms which plan it is.
    word = stored.plan_id if workspace.settings.confirm_by_word else None
    if not confirm("\n".join(facts), f"Approve {stored.plan_id}?", word=word):
        raise RefusedError("Cancelled. Nothing was approved.")
    return approve_plan.decide(workspace, proposal, person)


def find_key(name: str | None, nothing: str) -> Path:
    """The key to sign with: the named one, or the only one in ~/.ssh. Refused with `nothing` if it is not clear."""
    directory = Path("~/.ssh").expanduser()
    found = [Path(name)] if name else [directory / each for each in _KEY_NAMES]
    existing = [key.resolve() for key in found if key.is_file()]
    if len(existing) != 1:
        raise RefusedError(f"{nothing} Name the key to sign with: --key FILE")
    return existing[0]
