"""`kaiza plan new`: write a commented draft, which allows nothing until it is filled in and approved."""

import argparse

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import open_workspace, parse_plan_id
from kaiza.decisions import new_plan
from kaiza.queries.workspaces import find_person_name


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("new", help="write a commented draft to fill in")
    arguments.describe(
        parser,
        "Write plans/ID.md, a commented draft that allows nothing yet. An existing file is never replaced.\n"
        "Exit status: 0 written, 1 the plan exists already.",
        "kaiza plan new PLAN-0007-rotate-tokens",
        run=_run_new,
    )
    parser.add_argument("plan_id", metavar="ID", type=parse_plan_id, help="the id of the new plan")
    parser.add_argument("--title", default="What this plan is for", help="what the plan is for, in one line")
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_new(args: argparse.Namespace) -> int:
    author = find_person_name(args.name)
    with open_workspace(args) as workspace:
        proposal = new_plan.propose(workspace, args.plan_id, args.title, author)
        written = new_plan.decide(workspace, proposal)
    if args.json:
        output.print_json({"plan_id": args.plan_id, "path": written.path, "plan_hash": proposal.plan_hash})
    else:
        output.print_lines([written.path])
        next_commands = (f"  kaiza plan {verb} {args.plan_id}" for verb in ("lint", "approve"))
        output.print_error("\n".join(["Fill it in, then check and approve it:", *next_commands]))
    return output.SUCCESS
