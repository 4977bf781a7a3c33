"""`kaiza audit tail`: the last records, and those that come."""

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from kaiza.cli import log, options, place, say, selection
from kaiza.render import timeline

_PAUSE = 0.2


def add(commands: options.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("tail", help="the last records, and with -f those that come", allow_abbrev=False)
    options.describe(
        parser,
        "Show the last records and, with -f, each new one as it is written, until Ctrl-C.",
        "kaiza audit tail -f\nkaiza audit tail -n 50 --outcome error",
        run=_tail,
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is written from now on")
    parser.add_argument("-n", "--lines", metavar="N", type=_count, default=10, help="how many (default: 10)")
    selection.add(parser)
    options.workspace(parser)
    options.as_json(parser)


def _tail(args: argparse.Namespace) -> int:
    root = place.workspace(args)
    wanted = selection.of(args)
    newest = log.backward(root)
    last = next(log.backward(root), None)
    kept = list(islice(filter(wanted.takes, newest), args.lines))[::-1]
    records = _followed(root, kept, last["seq"] if last else 0, wanted) if args.follow else iter(kept)
    if args.json:
        for record in records:
            say.raw_line(log.line(record))
            _flush(args)
    else:
        for line in timeline.lines(records, say.width(), colour=say.colour(), endless=args.follow):
            say.lines([line])
            _flush(args)
    return say.YES


def _followed(
    root: str, kept: list[dict[str, Any]], seen: int, wanted: selection.Selection
) -> Iterator[dict[str, Any]]:
    yield from kept
    while True:
        for record in log.forward(root, seen + 1):
            seen = record["seq"]
            if wanted.takes(record):
                yield record
        time.sleep(_PAUSE)


def _flush(args: argparse.Namespace) -> None:
    if args.follow:
        sys.stdout.flush()


def _count(text: str) -> int:
    if not text.isdecimal() or not text.isascii():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of records")
    return int(text)
