"""`kaiza plan reject` and `kaiza plan revoke`: withdraw a draft, or a plan that was approved."""

import argparse
from functools import partial

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import add_plan_id, open_workspace, require_plan
from kaiza.decisions import withdraw_plan
from kaiza.domain.plans.plan import REJECTED, REVOKED
from kaiza.queries.workspaces import find_person_name

_NEW_STATUS = {"reject": REJECTED, "revoke": REVOKED}
_HELP = {"reject": "reject a draft", "revoke": "revoke an approval"}
_DESCRIPTIONS = {
    "reject": "Change a draft's status to REJECTED.",
    "revoke": "Change an approved plan's status to REVOKED. Its changes stay; `kaiza undo` restores the files.",
}


def add(commands: arguments.Subparsers) -> None:
    """Add the two subcommands."""
    for verb, text in _DESCRIPTIONS.items():
        parser = commands.add_parser(verb, help=_HELP[verb])
        arguments.describe(
            parser,
            f"{text} Recorded, and in force from the next call on. No confirmation is needed.\n"
            "Exit status: 0 done, 1 the plan's status does not allow it or the file changed in the meantime.",
            f"kaiza plan {verb} PLAN-0007-rotate-tokens",
            run=partial(_run_withdraw, verb),
        )
        add_plan_id(parser)
        parser.add_argument("--reason", default="", help="the reason, for the log")
        arguments.add_operator(parser)
        arguments.add_workspace(parser)
        arguments.add_json(parser)


def _run_withdraw(verb: str, args: argparse.Namespace) -> int:
    name = find_person_name(args.name)
    with open_workspace(args) as workspace:
        proposal = withdraw_plan.propose(
            workspace, require_plan(workspace, args.plan_id), _NEW_STATUS[verb], args.reason
        )
        ended = withdraw_plan.decide(workspace, proposal, name)
    if args.json:
        output.print_json({"plan_id": ended.plan_id, "status": ended.status, "plan_hash": ended.plan_hash})
    else:
        output.print_lines([f"{ended.plan_id} is {ended.status}."])
    return output.SUCCESS
