"""`kaiza errors`: the registry, from the running code."""

import argparse

from kaiza.cli import options, say
from kaiza.domain import codes
from kaiza.domain.codes import Code
from kaiza.render.tables import Cell, Column, lines

_COLUMNS = (
    Column("error code"),
    Column("http", right=True),
    Column("rpc", right=True),
    Column("editor"),
    Column("retry"),
    Column("locks"),
    Column("meaning", least=20),
)


def add(parser: argparse.ArgumentParser) -> None:
    """The command and its one part."""
    options.describe(
        parser,
        "Every code a call can fail with: what it means, how each protocol shows it, whether a retry can help,\n"
        "and whether a refused change with it locks the workspace.",
        "kaiza errors\nkaiza errors map HASH_MISMATCH",
        run=_list,
    )
    options.as_json(parser)
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", dest="subcommand")
    one = parts.add_parser("map", help="one code's row", allow_abbrev=False)
    options.describe(
        one,
        "One code's row. Exit status: 0 printed, 1 there is no such code.",
        "kaiza errors map HASH_MISMATCH --json",
        run=_map,
    )
    one.add_argument("code", metavar="CODE")
    options.as_json(one)


def _list(args: argparse.Namespace) -> int:
    rows = codes.REGISTRY.values()
    if args.json:
        say.document({"errors": [row.as_json() for row in rows]})
    else:
        say.lines(lines(_COLUMNS, map(_cells, rows), say.width(), colour=say.colour()))
    return say.YES


def _map(args: argparse.Namespace) -> int:
    try:
        row = codes.lookup(args.code)
    except KeyError as error:
        raise say.Stop(f"KeyError: {error}. `kaiza errors` lists every code there is.", say.NO) from None
    if args.json:
        say.document(row.as_json())
    else:
        say.lines(say.fields(row.as_json().items()))
    return say.YES


def _cells(row: Code) -> tuple[Cell, ...]:
    return (
        Cell(row.name, "bold"),
        Cell(str(row.http)),
        Cell(str(row.rpc)),
        Cell(f"{row.editor_code} {row.error_type}"),
        Cell("yes" if row.retryable else ""),
        Cell("yes" if row.locks else "", "red"),
        Cell(row.meaning),
    )
