"""`kaiza errors`: the registry, from the running code."""

import argparse

from kaiza.cli.console import arguments, output
from kaiza.domain import error_codes
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
    arguments.describe(
        parser,
        "Every code a call can fail with: what it means, how each protocol shows it, whether a retry can help,\n"
        "and whether a refused change with it locks the workspace.",
        "kaiza errors\nkaiza errors map HASH_MISMATCH",
        run=_run_list,
    )
    arguments.add_json(parser)
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", dest="subcommand")
    one = parts.add_parser("map", help="one code's row", allow_abbrev=False)
    arguments.describe(
        one,
        "One code's row. Exit status: 0 printed, 1 there is no such code.",
        "kaiza errors map HASH_MISMATCH --json",
        run=_run_map,
    )
    one.add_argument("code", metavar="CODE")
    arguments.add_json(one)


def _run_list(args: argparse.Namespace) -> int:
    rows = error_codes.REGISTRY.values()
    if args.json:
        output.print_json({"errors": [row.as_json() for row in rows]})
    else:
        output.print_lines(
            render_table(_COLUMNS, map(_row_cells, rows), output.terminal_width(), colour=output.has_colour())
        )
    return output.SUCCESS


def _run_map(args: argparse.Namespace) -> int:
    try:
        row = error_codes.lookup(args.code)
    except KeyError as error:
        raise output.CommandError(
            f"KeyError: {error}. `kaiza errors` lists every code there is.", output.FAILURE
        ) from None
    if args.json:
        output.print_json(row.as_json())
    else:
        output.print_lines(output.format_fields(row.as_json().items()))
    return output.SUCCESS


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
