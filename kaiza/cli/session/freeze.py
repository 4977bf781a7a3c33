"""`kaiza freeze`: stop every change, in every session of every process, until a person thaws the workspace."""

import argparse

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import open_workspace, resolve_name
from kaiza.store import human_decisions
from kaiza.store.config.settings import Settings


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "Stop every change in every session of the workspace at once, until `kaiza thaw`. Reads still work. Recorded "
        "with your reason; no confirmation is needed.\n"
        "Exit status: 0 frozen.",
        'kaiza freeze "release in progress"',
        run=_run_freeze,
    )
    parser.add_argument(
        "reason", metavar="REASON", type=arguments.parse_reason, help="reason, shown to people but not to agents"
    )
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_freeze(args: argparse.Namespace) -> int:
    # Default settings: a kaiza.toml that cannot be read must not stop a person from freezing.
    with open_workspace(args, Settings()) as workspace:
        detail = {"reason": args.reason}
        record = human_decisions.record_decision(workspace, "freeze", resolve_name(args.name), detail=detail)
    if args.json:
        output.print_json({"frozen": True, "reason": args.reason, "at": record["timestamp"], "seq": record["seq"]})
    else:
        output.print_sentences(["Frozen. All changes are refused until a person runs `kaiza thaw`."])
    return output.SUCCESS
