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
    root, wanted = place.workspace(args), selection.of(args)
    records = _followed(root, args.lines, wanted) if args.follow else iter(_last(root, args.lines, wanted))
    if args.json:
        for record in records:
            say.raw_line(log.line(record))
            _flush(args)
    else:
        for line in timeline.lines(records, say.width(), colour=say.colour(), endless=args.follow):
            say.lines([line])
            _flush(args)
    return say.YES


def _last(root: str, count: int, wanted: selection.Selection) -> list[dict[str, Any]]:
    newest = islice(log.picked(log.backward(root), wanted.takes, root), count)
    return list(newest)[::-1]


def _followed(root: str, count: int, wanted: selection.Selection) -> Iterator[dict[str, Any]]:
    """The last records and then what comes, also into a log that a person began anew."""
    file, size = log.extent(root)
    newest = log.last(root)
    seen = newest["seq"] if newest else 0
    yield from (record for record in _last(root, count, wanted) if record["seq"] <= seen)
    while True:
        here, length = log.extent(root)
        if here != file or length < size:
            seen = 0
        if (here, length) != (file, size):
            for record in log.forward(root, seen + 1):
                seen = record["seq"]
                if wanted.takes(record):
                    yield record
        file, size = here, length
        time.sleep(_PAUSE)


def _flush(args: argparse.Namespace) -> None:
    if args.follow:
        sys.stdout.flush()


def _count(text: str) -> int:
    if not text.isdecimal() or not text.isascii():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of records")
    return int(text)
