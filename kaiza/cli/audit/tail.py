"""`kaiza audit tail`: the last records of the log, and new ones as they are appended."""

import argparse
import sys
import time
from collections.abc import Iterator

from kaiza.cli.console import arguments, audit_reader, output, record_filter
from kaiza.cli.console.open_workspace import resolve_root
from kaiza.domain.audit.record import Record
from kaiza.render.records import render_timeline

_POLL_SECONDS = 0.2


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("tail", help="show the last records; with -f, new ones too")
    arguments.describe(
        parser,
        "Show the last records and, with -f, each new one as it is appended, until Ctrl-C.",
        "kaiza audit tail -f\nkaiza audit tail -n 50 --outcome error",
        run=_run_tail,
    )
    parser.add_argument("-f", "--follow", action="store_true", help="keep showing new records")
    parser.add_argument("-n", "--lines", metavar="N", type=parse_count, default=10, help="how many (default: 10)")
    record_filter.add_arguments(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_tail(args: argparse.Namespace) -> int:
    root = resolve_root(args)
    selection = record_filter.from_arguments(args, root)
    if args.follow:
        records = _follow_records(root, args.lines, selection)
    else:
        records = iter(audit_reader.last_records(root, args.lines, selection.matches))
    if args.json:
        for record in records:
            output.write_json_line(audit_reader.encode_line(record))
            _flush_if_following(args)
        return output.SUCCESS
    width, colour = output.terminal_width(), output.has_colour()
    for line in render_timeline(records, width, colour=colour, endless=args.follow):
        output.print_lines([line])
        _flush_if_following(args)
    return output.SUCCESS


def _follow_records(root: str, count: int, selection: record_filter.RecordFilter) -> Iterator[Record]:
    """The last records, then new ones, also across `kaiza audit accept`, which begins a new log."""
    # The extent is read before the records: an append in between makes the next poll read again, and misses nothing.
    inode, size = audit_reader.file_extent(root)
    newest = audit_reader.last_record(root)
    last_seq = newest["seq"] if newest else 0
    newest_matching = audit_reader.last_records(root, count, selection.matches)
    yield from (record for record in newest_matching if record["seq"] <= last_seq)
    while True:
        new_inode, new_size = audit_reader.file_extent(root)
        if new_inode != inode or new_size < size:  # another file, or cut off: sequence numbers begin again
            last_seq = 0
        if (new_inode, new_size) != (inode, size):
            for record in audit_reader.read_forward(root, last_seq + 1):
                last_seq = record["seq"]
                if selection.matches(record):
                    yield record
        inode, size = new_inode, new_size
        time.sleep(_POLL_SECONDS)


def _flush_if_following(args: argparse.Namespace) -> None:
    if args.follow:
        sys.stdout.flush()


def parse_count(text: str) -> int:
    """A number of records."""
    if not text.isdecimal() or not text.isascii():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of records")
    return int(text)
