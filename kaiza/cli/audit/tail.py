"""`kaiza audit tail`: the last records, and those that come."""

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from kaiza.cli.console import arguments, audit_reader, output, record_filter
from kaiza.render import record_timeline

_POLL_SECONDS = 0.2


def add(commands: arguments.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("tail", help="the last records, and with -f those that come", allow_abbrev=False)
    arguments.describe(
        parser,
        "Show the last records and, with -f, each new one as it is written, until Ctrl-C.",
        "kaiza audit tail -f\nkaiza audit tail -n 50 --outcome error",
        run=_run_tail,
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is written from now on")
    parser.add_argument("-n", "--lines", metavar="N", type=_parse_count, default=10, help="how many (default: 10)")
    record_filter.add_arguments(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_tail(args: argparse.Namespace) -> int:
    root, wanted = arguments.resolve_root(args), record_filter.from_arguments(args)
    records = (
        _follow_records(root, args.lines, wanted) if args.follow else iter(_last_records(root, args.lines, wanted))
    )
    if args.json:
        for record in records:
            output.write_json_line(audit_reader.encode_line(record))
            _flush_if_following(args)
    else:
        for line in record_timeline.render_timeline(
            records, output.terminal_width(), colour=output.has_colour(), endless=args.follow
        ):
            output.print_lines([line])
            _flush_if_following(args)
    return output.SUCCESS


def _last_records(root: str, count: int, wanted: record_filter.RecordFilter) -> list[dict[str, Any]]:
    newest = islice(audit_reader.filter_records(audit_reader.read_backward(root), wanted.matches, root), count)
    return list(newest)[::-1]


def _follow_records(root: str, count: int, wanted: record_filter.RecordFilter) -> Iterator[dict[str, Any]]:
    """The last records and then what comes, also into a log that a person began anew."""
    file, size = audit_reader.file_extent(root)
    newest = audit_reader.last_record(root)
    seen = newest["seq"] if newest else 0
    yield from (record for record in _last_records(root, count, wanted) if record["seq"] <= seen)
    while True:
        here, length = audit_reader.file_extent(root)
        if here != file or length < size:
            seen = 0
        if (here, length) != (file, size):
            for record in audit_reader.read_forward(root, seen + 1):
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
