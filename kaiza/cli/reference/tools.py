"""`kaiza tools`: what an agent can be offered, from the contract files."""

import argparse
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kaiza.cli.console import arguments, output
from kaiza.render.tables import Cell, Column, render_table
from kaiza.store.config.schema_registry import SchemaRegistry

_COLUMNS = (
    Column("tool"),
    Column("for"),
    Column("does"),
    Column("category"),
    Column("title", min_width=16),
)


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    arguments.describe(
        parser,
        "Every tool that an agent can be offered: for which role, and whether it reads, keeps or changes something.",
        "kaiza tools --json | jq '.tools[].name'",
        run=_run_list,
    )
    arguments.add_json(parser)


def _run_list(args: argparse.Namespace) -> int:
    rows = SchemaRegistry().catalog()
    if args.json:
        wrapped = _wrapped_tools(rows)
        output.print_json({"tools": [_tool_document(row, wrapped) for row in rows]})
    else:
        output.print_lines(
            render_table(_COLUMNS, map(_row_cells, rows), output.terminal_width(), colour=output.has_colour())
        )
    return output.SUCCESS


def _wrapped_tools(rows: Sequence[Mapping[str, Any]]) -> Collection[str]:
    """The tools that a server puts behind the boundary, read off a server's own handlers."""
    from kaiza.app import App  # noqa: PLC0415  the tools themselves; the table for people needs none

    return App([], allowed={row["only_with"] for row in rows if "only_with" in row}).wrapped_tools


def _tool_document(row: Mapping[str, Any], wrapped: Collection[str]) -> dict[str, Any]:
    """The card under the name that calls it."""
    card = {key: value for key, value in row.items() if key != "id"}
    return {"name": row["id"], **card, "wrapped": row["id"] in wrapped}


def _row_cells(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    style = "yellow" if row["safety_level"] == "change" else ""
    return (
        Cell(row["id"], "bold"),
        Cell(" ".join(row["roles"])),
        Cell(row["safety_level"], style),
        Cell(row["category"]),
        Cell(row["title"]),
    )
