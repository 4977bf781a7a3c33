"""`kaiza audit export`: records as they are, byte for byte, for somebody else to verify."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from kaiza.cli import log, options, place, say, selection
from kaiza.render import verdict


def add(commands: options.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("export", help="write records out, byte for byte", allow_abbrev=False)
    options.describe(
        parser,
        "Write the selected records as they stand in the log, a line of JSON each.\n"
        "Every line can be checked on its own: its last member is the SHA-256 of the rest.",
        "kaiza audit export --since 7d --output week.jsonl\nkaiza audit export --session 3f2b | jq .tool_name",
        run=_export,
    )
    parser.add_argument("--output", metavar="FILE", help="a new file (default: standard output)")
    selection.add(parser)
    options.workspace(parser)


def _export(args: argparse.Namespace) -> int:
    wanted = selection.of(args)
    lines = (log.line(record) for record in log.forward(place.workspace(args)) if wanted.takes(record))
    if args.output is None:
        for line in lines:
            say.raw_line(line)
    else:
        count = _write(Path(args.output), lines)
        say.note(f"{verdict.records(count)} written to {args.output}.")
    return say.YES


def _write(target: Path, lines: Iterator[bytes]) -> int:
    count = 0
    try:
        with target.open("xb") as file:
            for line in lines:
                file.write(line + b"\n")
                count += 1
    except FileExistsError:
        raise say.Stop(f"{target} is there already. Name another file with --output.", say.NO) from None
    return count
