"""`kaiza audit show`: the log as a timeline, or one record in full."""

import argparse
import re
from collections.abc import Iterable, Iterator
from itertools import takewhile

from kaiza.cli.audit.tail import parse_count
from kaiza.cli.console import arguments, audit_reader, output, record_filter
from kaiza.cli.console.open_workspace import resolve_root
from kaiza.domain.audit.record import Record
from kaiza.render import records

_SPAN_PATTERN = re.compile(r"([1-9][0-9]{0,15})(?:-([1-9][0-9]{0,15}))?")


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("show", help="show records, oldest first")
    arguments.describe(
        parser,
        "Show records of the audit log, oldest first: one row each, or one record in full.\n"
        "Exit status: 0 shown, 1 no record with that SEQ.",
        "kaiza audit show -n 20\nkaiza audit show --since 2h --outcome error\nkaiza audit show --path 'src/**'\n"
        "kaiza audit show 41",
        run=_run_show,
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("-n", "--lines", metavar="N", type=parse_count, help="only the newest N that match")
    which.add_argument(
        "span", metavar="SEQ", nargs="?", type=_parse_span, help="one record in full, or a range such as 40-60"
    )
    record_filter.add_arguments(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_show(args: argparse.Namespace) -> int:
    first_seq, last_seq = args.span or (1, None)
    root = resolve_root(args)
    selection = record_filter.from_arguments(args, root)
    if args.lines is None:
        matching = audit_reader.filter_records(_read_span(root, first_seq, last_seq), selection.matches, root)
    else:
        matching = iter(audit_reader.last_records(root, args.lines, selection.matches))
    first = next(matching, None)
    if first is None:
        output.print_error("No matching records.")
        return output.FAILURE if args.span else output.SUCCESS
    if args.json:
        for record in _with_first(first, matching):
            output.write_json_line(audit_reader.encode_line(record))
    elif first_seq == last_seq:
        output.print_lines(records.render_record(first, output.terminal_width(), colour=output.has_colour()))
    else:
        rows = records.render_timeline(
            _with_first(first, matching), output.terminal_width(), colour=output.has_colour()
        )
        output.print_lines(rows)
    return output.SUCCESS


def _read_span(root: str, first_seq: int, last_seq: int | None) -> Iterator[Record]:
    forward = audit_reader.read_forward(root, first_seq)
    return forward if last_seq is None else takewhile(lambda record: record["seq"] <= last_seq, forward)


def _with_first(first: Record, rest: Iterable[Record]) -> Iterator[Record]:
    yield first
    yield from rest


def _parse_span(text: str) -> tuple[int, int]:
    match = _SPAN_PATTERN.fullmatch(text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not a record number. Write one, 41, or a range, 40-60")
    return int(match[1]), int(match[2] or match[1])
