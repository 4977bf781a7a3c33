"""`kaiza freeze`: every change stops, in every session of every process, until a person thaws the workspace."""

import argparse

from kaiza.cli.console import arguments, open_workspace, output
from kaiza.store import human_decisions
from kaiza.store.config.settings import Settings

MAX_REASON = 1000


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    arguments.describe(
        parser,
        "Stop every change in every session of the workspace at once, until kaiza thaw. Reads go on.\n"
        "Recorded with your reason; nobody is asked. Exit status: 0 frozen.",
        'kaiza freeze "release in progress"',
        run=_run_freeze,
    )
    parser.add_argument(
        "reason", metavar="REASON", type=_parse_reason, help="why; people see it, agents only that it is so"
    )
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_freeze(args: argparse.Namespace) -> int:
    with open_workspace.open_workspace(
        args, Settings()
    ) as ground:  # a kaiza.toml that cannot be read must not keep anybody from it
        detail = {"reason": args.reason}
        record = human_decisions.record_decision(ground, "freeze", arguments.resolve_name(args.name), detail=detail)
    if args.json:
        output.print_json({"frozen": True, "reason": args.reason, "at": record["timestamp"], "seq": record["seq"]})
    else:
        output.print_lines(["Frozen: nothing changes until a person runs kaiza thaw."])
    return output.SUCCESS


def _parse_reason(text: str) -> str:
    if not text.strip() or len(text) > MAX_REASON:
        raise argparse.ArgumentTypeError(f"say why, in at most {MAX_REASON} characters")
    return text
