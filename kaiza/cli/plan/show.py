"""`kaiza plan show`: one plan, with what it really touches now."""

import argparse

from kaiza.cli.console import arguments, open_workspace, output
from kaiza.cli.plan import review
from kaiza.render import plans
from kaiza.store import human_decisions


def add(commands: arguments.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("show", help="one plan, and the files it touches now", allow_abbrev=False)
    arguments.describe(
        parser,
        "One plan: what it allows, which files that touches now, what to look at twice, what was used of its limits,\n"
        "and what became of it since it was approved. Characters that do not show, or look like others, are spelled\n"
        "out. Exit status: 0 shown, 1 there is no such plan, or it has errors and counts for nothing.",
        "kaiza plan show PLAN-0007-rotate-tokens",
        run=_run_show,
    )
    arguments.add_argument(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_show(args: argparse.Namespace) -> int:
    with open_workspace.open_workspace(args) as ground:
        stored = arguments.require_plan(ground, args.plan_id)
        told = review.build_document(ground, stored, human_decisions.current_timestamp())
    if args.json:
        output.print_json(told)
    else:
        output.print_lines(plans.render_plan(told, output.terminal_width(), colour=output.has_colour()))
    return output.SUCCESS if stored.parsed.plan else output.FAILURE
