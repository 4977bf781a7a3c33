"""`kaiza audit show`: the record as a timeline, or some of its records in full."""

import argparse
import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

from kaiza.cli import log, options, place, say, selection
from kaiza.render import detail, timeline

_SPAN = re.compile(r"([1-9][0-9]{0,15})(?:-([1-9][0-9]{0,15}))?")


def add(commands: options.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("show", help="read the record, oldest first", allow_abbrev=False)
    options.describe(
        parser,
        "Read the record, oldest first: a line each, or one record in full.\n"
        "Exit status: 0 shown, 1 there is no such SEQ.",
        "kaiza audit show --since 2h --outcome error\nkaiza audit show --path 'src/**'\nkaiza audit show 41",
        run=_show,
    )
    parser.add_argument(
        "span", metavar="SEQ", nargs="?", type=_span, help="one record in full, or a span such as 40-60"
    )
    selection.add(parser)
    options.workspace(parser)
    options.as_json(parser)


def _show(args: argparse.Namespace) -> int:
    first, last = args.span or (1, None)
    wanted = selection.of(args)
    root = place.workspace(args)
    found = log.picked(_span_of(root, first, last), wanted.takes, root)
    one = next(found, None)
    if one is None:
        say.note("No record is like that.")
        return say.NO if args.span else say.YES
    if args.json:
        for record in _again(one, found):
            say.raw_line(log.line(record))
    elif first == last:
        say.lines(detail.lines(one, colour=say.colour()))
    else:
        say.lines(timeline.lines(_again(one, found), say.width(), colour=say.colour()))
    return say.YES


def _span_of(root: str, first: int, last: int | None) -> Iterator[dict[str, Any]]:
    records = log.forward(root, first)
    return records if last is None else takewhile(lambda record: record["seq"] <= last, records)


def _again(one: dict[str, Any], rest: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield one
    yield from rest


def _span(text: str) -> tuple[int, int]:
    found = _SPAN.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no record. Write its number, such as 41, or a span, 40-60")
    return int(found[1]), int(found[2] or found[1])
