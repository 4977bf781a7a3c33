"""`kaiza audit show`: the record as a timeline, or some of its records in full."""

import argparse
import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

from kaiza.cli.console import arguments, audit_reader, output, record_filter
from kaiza.render import record_detail, record_timeline

_SPAN_PATTERN = re.compile(r"([1-9][0-9]{0,15})(?:-([1-9][0-9]{0,15}))?")


def add(commands: arguments.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("show", help="read the record, oldest first", allow_abbrev=False)
    arguments.describe(
        parser,
        "Read the record, oldest first: a line each, or one record in full.\n"
        "Exit status: 0 shown, 1 there is no such SEQ.",
        "kaiza audit show --since 2h --outcome error\nkaiza audit show --path 'src/**'\nkaiza audit show 41",
        run=_run_show,
    )
    parser.add_argument(
        "span", metavar="SEQ", nargs="?", type=_parse_span, help="one record in full, or a span such as 40-60"
    )
    record_filter.add_arguments(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_show(args: argparse.Namespace) -> int:
    first, last = args.span or (1, None)
    wanted = record_filter.from_arguments(args)
    root = arguments.resolve_root(args)
    found = audit_reader.filter_records(_read_span(root, first, last), wanted.matches, root)
    one = next(found, None)
    if one is None:
        output.print_error("No record is like that.")
        return output.FAILURE if args.span else output.SUCCESS
    if args.json:
        for record in _with_first(one, found):
            output.write_json_line(audit_reader.encode_line(record))
    elif first == last:
        output.print_lines(record_detail.render_record(one, colour=output.has_colour()))
    else:
        output.print_lines(
            record_timeline.render_timeline(
                _with_first(one, found), output.terminal_width(), colour=output.has_colour()
            )
        )
    return output.SUCCESS


def _read_span(root: str, first: int, last: int | None) -> Iterator[dict[str, Any]]:
    records = audit_reader.read_forward(root, first)
    return records if last is None else takewhile(lambda record: record["seq"] <= last, records)


def _with_first(one: dict[str, Any], rest: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield one
    yield from rest


def _parse_span(text: str) -> tuple[int, int]:
    found = _SPAN_PATTERN.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no record. Write its number, such as 41, or a span, 40-60")
    return int(found[1]), int(found[2] or found[1])
