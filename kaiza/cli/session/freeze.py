"""`kaiza freeze`: every change stops, in every session of every process, until a person thaws the workspace."""

import argparse

from kaiza.cli.console import arguments as options
from kaiza.cli.console import open_workspace as standing
from kaiza.cli.console import operator as person
from kaiza.cli.console import output as say
from kaiza.store import human_decisions as persons_word
from kaiza.store.config.settings import Settings

MAX_REASON = 1000


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    options.describe(
        parser,
        "Stop every change in every session of the workspace at once, until kaiza thaw. Reads go on.\n"
        "Recorded with your reason; nobody is asked. Exit status: 0 frozen.",
        'kaiza freeze "release in progress"',
        run=_run_freeze,
    )
    parser.add_argument(
        "reason", metavar="REASON", type=_parse_reason, help="why; people see it, agents only that it is so"
    )
    options.add_operator(parser)
    options.add_workspace(parser)
    options.add_json(parser)


def _run_freeze(args: argparse.Namespace) -> int:
    with standing.open_workspace(
        args, Settings()
    ) as ground:  # a kaiza.toml that cannot be read must not keep anybody from it
        detail = {"reason": args.reason}
        record = persons_word.record_decision(ground, "freeze", person.resolve_name(args.name), detail=detail)
    if args.json:
        say.print_json({"frozen": True, "reason": args.reason, "at": record["timestamp"], "seq": record["seq"]})
    else:
        say.print_lines(["Frozen: nothing changes until a person runs kaiza thaw."])
    return say.SUCCESS


def _parse_reason(text: str) -> str:
    if not text.strip() or len(text) > MAX_REASON:
        raise argparse.ArgumentTypeError(f"say why, in at most {MAX_REASON} characters")
    return text
