"""`kaiza plan lint`: errors and warnings in plans, each with its position and what to write instead."""

import argparse
from typing import Any

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import add_plan_id, open_workspace, require_plan
from kaiza.queries import plan_lint
from kaiza.render import plans
from kaiza.render.terminal import format_count, wrap


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("lint", help="check plans for errors and warnings")
    arguments.describe(
        parser,
        "Check plans. Each finding has its position, its rule and what to write instead. A plan with an error allows "
        "no changes; warnings are for you to judge. Lines and columns count from 1, with --json from 0.\n"
        "Exit status: 0 no errors, 1 errors or no such plan.",
        "kaiza plan lint\nkaiza plan lint PLAN-0007-rotate-tokens",
        run=_run_lint,
    )
    add_plan_id(parser, nargs="*")
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_lint(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        if args.plan_id:
            stored = {plan.plan_id: plan for plan in (require_plan(workspace, prefix) for prefix in args.plan_id)}
            linted = [plan_lint.lint_plan(workspace, plan) for plan in stored.values()]
        else:
            linted = [plan_lint.lint_plan(workspace, plan) for plan in workspace.plans.read_all()]
            linted += plan_lint.list_misnamed_files(workspace)
    is_valid = all(plan["valid"] for plan in linted)
    if args.json:
        output.print_json({"valid": is_valid, "plans": linted})
    else:
        _print_findings(linted)
    return output.SUCCESS if is_valid else output.FAILURE


def _print_findings(linted: list[dict[str, Any]]) -> None:
    for plan in linted:
        for finding in plan["findings"]:
            output.print_lines(wrap([plans.format_finding(plan["path"], finding)], output.terminal_width()))
    invalid = sum(not plan["valid"] for plan in linted)
    output.print_error(f"{format_count(len(linted), 'plan')} checked, {invalid} with errors.")
