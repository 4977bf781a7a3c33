"""`kaiza audit tail`: the last records, and those that come."""

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from kaiza.cli.console import arguments as options
from kaiza.cli.console import audit_reader as log
from kaiza.cli.console import find_workspace as place
from kaiza.cli.console import output as say
from kaiza.cli.console import record_filter as selection
from kaiza.render import record_timeline as timeline

_POLL_SECONDS = 0.2


def add(commands: options.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("tail", help="the last records, and with -f those that come", allow_abbrev=False)
    options.describe(
        parser,
        "Show the last records and, with -f, each new one as it is written, until Ctrl-C.",
        "kaiza audit tail -f\nkaiza audit tail -n 50 --outcome error",
        run=_run_tail,
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is written from now on")
    parser.add_argument("-n", "--lines", metavar="N", type=_parse_count, default=10, help="how many (default: 10)")
    selection.add_arguments(parser)
    options.add_workspace(parser)
    options.add_json(parser)


def _run_tail(args: argparse.Namespace) -> int:
    root, wanted = place.resolve_root(args), selection.from_arguments(args)
    records = (
        _follow_records(root, args.lines, wanted) if args.follow else iter(_last_records(root, args.lines, wanted))
    )
    if args.json:
        for record in records:
            say.write_json_line(log.encode_line(record))
            _flush_if_following(args)
    else:
        for line in timeline.render_timeline(
            records, say.terminal_width(), colour=say.has_colour(), endless=args.follow
        ):
            say.print_lines([line])
            _flush_if_following(args)
    return say.SUCCESS


def _last_records(root: str, count: int, wanted: selection.RecordFilter) -> list[dict[str, Any]]:
    newest = islice(log.filter_records(log.read_backward(root), wanted.matches, root), count)
    return list(newest)[::-1]


def _follow_records(root: str, count: int, wanted: selection.RecordFilter) -> Iterator[dict[str, Any]]:
    """The last records and then what comes, also into a log that a person began anew."""
    file, size = log.file_extent(root)
    newest = log.last_record(root)
    seen = newest["seq"] if newest else 0
    yield from (record for record in _last_records(root, count, wanted) if record["seq"] <= seen)
    while True:
        here, length = log.file_extent(root)
        if here != file or length < size:
            seen = 0
        if (here, length) != (file, size):
            for record in log.read_forward(root, seen + 1):
                seen = record["seq"]
                if wanted.matches(record):
                    yield record
        file, size = here, length
        time.sleep(_POLL_SECONDS)


def _flush_if_following(args: argparse.Namespace) -> None:
    if args.follow:
        sys.stdout.flush()


def _parse_count(text: str) -> int:
    if not text.isdecimal() or not text.isascii():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of records")
    return int(text)
