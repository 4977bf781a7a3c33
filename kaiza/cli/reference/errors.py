"""`kaiza errors`: the registry of error codes, from the running code."""

import argparse

from kaiza.cli.console import arguments, output
from kaiza.domain import error_codes
from kaiza.domain.error_codes import ErrorCode
from kaiza.domain.refusal import RefusedError
from kaiza.render.tables import Cell, Column, render_table

_COLUMNS = (
    Column("error code"),
    Column("http", align_right=True),
    Column("rpc", align_right=True),
    Column("editor"),
    Column("retry"),
    Column("locks"),
    Column("meaning", moves_below=True),
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options and the subcommand."""
    arguments.describe(
        parser,
        "List the codes a call can fail with: meaning, HTTP status, JSON-RPC and editor codes, whether a retry can "
        "help, and whether a change refused with the code locks the role.",
        "kaiza errors\nkaiza errors map HASH_MISMATCH",
        run=_run_list,
    )
    arguments.add_json(parser)
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", dest="subcommand")
    map_parser = parts.add_parser("map", help="show one code")
    arguments.describe(
        map_parser,
        "Show one error code.\nExit status: 0 printed, 1 no such code.",
        "kaiza errors map HASH_MISMATCH --json",
        run=_run_map,
    )
    map_parser.add_argument("code", metavar="CODE", help="the error code")
    arguments.add_json(map_parser)


def _run_list(args: argparse.Namespace) -> int:
    rows = error_codes.SYSTEM_ERROR_CODES.values()
    if args.json:
        output.print_json({"contract_version": error_codes.CONTRACT_VERSION, "errors": [row.as_json() for row in rows]})
    else:
        output.print_lines(
            render_table(
                _COLUMNS, map(_row_cells, error_codes.list_forms()), output.terminal_width(), colour=output.has_colour()
            )
        )
    return output.SUCCESS


def _run_map(args: argparse.Namespace) -> int:
    try:
        row = error_codes.lookup(args.code)
    except KeyError as error:
        raise RefusedError(f"KeyError: there is no error code {error}. `kaiza errors` lists the codes.") from None
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
