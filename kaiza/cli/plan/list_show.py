"""`kaiza plan list` and `kaiza plan show`: all plans in a table, or one in full."""

import argparse

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import add_plan_id, open_workspace, require_plan
from kaiza.domain.plans.plan import INVALID, STATUSES
from kaiza.queries.plan_review import count_standings, describe_unlisted, list_plans, review_plan
from kaiza.render import plans


def add(commands: arguments.Subparsers) -> None:
    """Add the two subcommands."""
    list_parser = commands.add_parser("list", help="list plans and whether they allow changes")
    arguments.describe(
        list_parser,
        "List plans: status, whether each allows changes now, and how much of its limits is used.",
        "kaiza plan list\nkaiza plan list --status APPROVED",
        run=_run_list,
    )
    statuses = (*STATUSES, INVALID)
    list_parser.add_argument(
        "--status", metavar="STATUS", choices=statuses, help=f"only plans with this status: {', '.join(statuses)}"
    )
    show_parser = commands.add_parser("show", help="show one plan and the files it matches now")
    arguments.describe(
        show_parser,
        "Show one plan: its text, what it allows, the files it matches now, warnings, how much of its limits is used "
        "and what changed since it was approved. Invisible and lookalike characters are spelled out.\n"
        "Exit status: 0 shown, 1 no such plan or the plan has errors.",
        "kaiza plan show PLAN-0007-rotate-tokens",
        run=_run_show,
    )
    add_plan_id(show_parser)
    for parser in (list_parser, show_parser):
        arguments.add_workspace(parser)
        arguments.add_json(parser)


def _run_list(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        listed = [plan for plan in list_plans(workspace) if args.status in (None, plan["status"])]
        unlisted = describe_unlisted(workspace)
    if args.json:
        output.print_json({"plans": listed})
    elif listed:
        output.print_lines(plans.render_list(listed, output.terminal_width(), colour=output.has_colour()))
        output.print_error(" ".join(filter(None, (f"{count_standings(listed)}.", unlisted))))
    else:
        output.print_error("No matching plans. `kaiza plan new PLAN-0001-name` writes a draft to fill in.")
    return output.SUCCESS


def _run_show(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        stored = require_plan(workspace, args.plan_id)
        review = review_plan(workspace, stored)
    if args.json:
        output.print_json(review)
    else:
        output.print_lines(plans.render_plan(review, output.terminal_width(), colour=output.has_colour()))
    return output.SUCCESS if stored.parsed.plan else output.FAILURE
