"""`kaiza plan show`: one plan, with what it really touches now."""

import argparse

from kaiza.cli.console import arguments as options
from kaiza.cli.console import open_workspace as standing
from kaiza.cli.console import output as say
from kaiza.cli.console import plan_argument as plan_id
from kaiza.cli.plan import review as plan_sight
from kaiza.render import plans
from kaiza.store import human_decisions as persons_word


def add(commands: options.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("show", help="one plan, and the files it touches now", allow_abbrev=False)
    options.describe(
        parser,
        "One plan: what it allows, which files that touches now, what to look at twice, what was used of its limits,\n"
        "and what became of it since it was approved. Characters that do not show, or look like others, are spelled\n"
        "out. Exit status: 0 shown, 1 there is no such plan, or it has errors and counts for nothing.",
        "kaiza plan show PLAN-0007-rotate-tokens",
        run=_run_show,
    )
    plan_id.add_argument(parser)
    options.add_workspace(parser)
    options.add_json(parser)


def _run_show(args: argparse.Namespace) -> int:
    with standing.open_workspace(args) as ground:
        stored = plan_id.require_plan(ground, args.plan_id)
        told = plan_sight.build_document(ground, stored, persons_word.current_timestamp())
    if args.json:
        say.print_json(told)
    else:
        say.print_lines(plans.render_plan(told, say.terminal_width(), colour=say.has_colour()))
    return say.SUCCESS if stored.parsed.plan else say.FAILURE
