"""`kaiza plan show`: one plan, with what it really touches now."""

import argparse

from kaiza.cli import options, plan_id, plan_sight, say, standing
from kaiza.render import plans
from kaiza.store import persons_word


def add(commands: options.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("show", help="one plan, and the files it touches now", allow_abbrev=False)
    options.describe(
        parser,
        "One plan: what it allows, which files that touches now, what to look at twice, what was used of its limits,\n"
        "and what became of it since it was approved. Characters that do not show, or look like others, are spelled\n"
        "out. Exit status: 0 shown, 1 there is no such plan, or it has errors and counts for nothing.",
        "kaiza plan show PLAN-0007-rotate-tokens",
        run=_show,
    )
    plan_id.add(parser)
    options.workspace(parser)
    options.as_json(parser)


def _show(args: argparse.Namespace) -> int:
    with standing.ground(args) as ground:
        stored = plan_id.found(ground, args.plan_id)
        told = plan_sight.document(ground, stored, persons_word.now())
    if args.json:
        say.document(told)
    else:
        say.lines(plans.shown(told, say.width(), colour=say.colour()))
    return say.YES if stored.reading.plan else say.NO
