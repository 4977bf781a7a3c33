"""`kaiza audit show` and `kaiza audit tail`: records as a timeline, one in full, or new ones as they are appended."""

import argparse
import re
import sys
import time
from collections.abc import Iterator
from itertools import chain, takewhile

from kaiza.cli.console import arguments, audit_reader, output, record_filter
from kaiza.cli.console.open_workspace import resolve_root
from kaiza.domain.audit.record import Record
from kaiza.render import records

_POLL_SECONDS = 0.2
_SPAN_PATTERN = re.compile(r"([1-9][0-9]{0,15})(?:-([1-9][0-9]{0,15}))?")


def add(commands: arguments.Subparsers) -> None:
    """Add the two subcommands."""
    show = commands.add_parser("show", help="show records, oldest first")
    arguments.describe(
        show,
        "Show records of the audit log, oldest first: one row each, or one record in full.\n"
        "Exit status: 0 shown, 1 no record with that SEQ.",
        "kaiza audit show -n 20\nkaiza audit show --since 2h --outcome error\nkaiza audit show --path 'src/**'\n"
        "kaiza audit show 41",
        run=_run_show,
    )
    which = show.add_mutually_exclusive_group()
    which.add_argument("-n", "--lines", metavar="N", type=_parse_count, help="only the newest N that match")
    which.add_argument(
        "span", metavar="SEQ", nargs="?", type=_parse_span, help="one record in full, or a range such as 40-60"
    )
    tail = commands.add_parser("tail", help="show the last records; with -f, new ones too")
    arguments.describe(
        tail,
        "Show the last records and, with -f, each new one as it is appended, until Ctrl-C.",
        "kaiza audit tail -f\nkaiza audit tail -n 50 --outcome error",
        run=_run_tail,
    )
    tail.add_argument("-f", "--follow", action="store_true", help="keep showing new records")
    tail.add_argument("-n", "--lines", metavar="N", type=_parse_count, default=10, help="how many (default: 10)")
    for parser in (show, tail):
        record_filter.add_arguments(parser)
        arguments.add_workspace(parser)
        arguments.add_json(parser)


def _run_show(args: argparse.Namespace) -> int:
    first_seq, last_seq = args.span or (1, None)
    root = resolve_root(args)
    selection = record_filter.from_arguments(args, root)
    if args.lines is None:
        span = audit_reader.read_forward(root, first_seq)
        if last_seq is not None:
            span = takewhile(lambda record: record.seq <= last_seq, span)
        matching = audit_reader.filter_records(span, selection.matches, root)
    else:
        matching = iter(audit_reader.last_records(root, args.lines, selection.matches))
    first = next(matching, None)
    if first is None:
        output.print_error("No matching records.")
        return output.FAILURE if args.span else output.SUCCESS
    if args.json:
        for record in chain([first], matching):
            output.write_json_line(audit_reader.encode_line(record))
    elif first_seq == last_seq:
        output.print_lines(records.render_record(first, output.terminal_width(), colour=output.has_colour()))
    else:
        width, colour = output.terminal_width(), output.has_colour()
        output.print_lines(records.render_timeline(chain([first], matching), width, colour=colour))
    return output.SUCCESS


def _run_tail(args: argparse.Namespace) -> int:
    root = resolve_root(args)
    selection = record_filter.from_arguments(args, root)
    if args.follow:
        found = _follow_records(root, args.lines, selection)
    else:
        found = iter(audit_reader.last_records(root, args.lines, selection.matches))
    if args.json:
        for record in found:
            output.write_json_line(audit_reader.encode_line(record))
            if args.follow:
                sys.stdout.flush()
        return output.SUCCESS
    width, colour = output.terminal_width(), output.has_colour()
    for line in records.render_timeline(found, width, colour=colour, endless=args.follow):
        output.print_lines([line])
        if args.follow:
            sys.stdout.flush()
    return output.SUCCESS


def _follow_records(root: str, count: int, selection: record_filter.RecordFilter) -> Iterator[Record]:
    """The last records, then new ones, also across `kaiza audit accept`, which begins a new log."""
    # The extent is read before the records: an append in between makes the next poll read again, and misses nothing.
    inode, size = audit_reader.file_extent(root)
    newest = audit_reader.last_record(root)
    last_seq = newest.seq if newest else 0
    newest_matching = audit_reader.last_records(root, count, selection.matches)
    yield from (record for record in newest_matching if record.seq <= last_seq)
    while True:
        new_inode, new_size = audit_reader.file_extent(root)
        if new_inode != inode or new_size < size:  # another file, or cut off: sequence numbers begin again
            last_seq = 0
        if (new_inode, new_size) != (inode, size):
            for record in audit_reader.read_forward(root, last_seq + 1):
                last_seq = record.seq
                if selection.matches(record):
                    yield record
        inode, size = new_inode, new_size
        time.sleep(_POLL_SECONDS)


def _parse_count(text: str) -> int:
    """A number of records."""
    if not text.isdecimal() or not text.isascii():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of records")
    return int(text)


def _parse_span(text: str) -> tuple[int, int]:
    match = _SPAN_PATTERN.fullmatch(text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not a record number. Write one, 41, or a range, 40-60")
    return int(match[1]), int(match[2] or match[1])
