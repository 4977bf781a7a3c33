"""`kaiza errors`: the registry, from the running code."""

import argparse

from kaiza.cli.console import arguments as options
from kaiza.cli.console import output as say
from kaiza.domain import error_codes as codes
from kaiza.domain.error_codes import ErrorCode
from kaiza.render.tables import Cell, Column, render_table

_COLUMNS = (
    Column("error code"),
    Column("http", align_right=True),
    Column("rpc", align_right=True),
    Column("editor"),
    Column("retry"),
    Column("locks"),
    Column("meaning", min_width=20),
)


def add(parser: argparse.ArgumentParser) -> None:
    """The command and its one part."""
    options.describe(
        parser,
        "Every code a call can fail with: what it means, how each protocol shows it, whether a retry can help,\n"
        "and whether a refused change with it locks the workspace.",
        "kaiza errors\nkaiza errors map HASH_MISMATCH",
        run=_run_list,
    )
    options.add_json(parser)
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", dest="subcommand")
    one = parts.add_parser("map", help="one code's row", allow_abbrev=False)
    options.describe(
        one,
        "One code's row. Exit status: 0 printed, 1 there is no such code.",
        "kaiza errors map HASH_MISMATCH --json",
        run=_run_map,
    )
    one.add_argument("code", metavar="CODE")
    options.add_json(one)


def _run_list(args: argparse.Namespace) -> int:
    rows = codes.REGISTRY.values()
    if args.json:
        say.print_json({"errors": [row.as_json() for row in rows]})
    else:
        say.print_lines(render_table(_COLUMNS, map(_row_cells, rows), say.terminal_width(), colour=say.has_colour()))
    return say.SUCCESS


def _run_map(args: argparse.Namespace) -> int:
    try:
        row = codes.lookup(args.code)
    except KeyError as error:
        raise say.CommandError(f"KeyError: {error}. `kaiza errors` lists every code there is.", say.FAILURE) from None
    if args.json:
        say.print_json(row.as_json())
    else:
        say.print_lines(say.format_fields(row.as_json().items()))
    return say.SUCCESS


def _row_cells(row: ErrorCode) -> tuple[Cell, ...]:
    return (
        Cell(row.name, "bold"),
        Cell(str(row.http)),
        Cell(str(row.rpc)),
        Cell(f"{row.editor_code} {row.error_type}"),
        Cell("yes" if row.retryable else ""),
        Cell("yes" if row.locks else "", "red"),
        Cell(row.meaning),
    )
