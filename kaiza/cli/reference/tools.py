"""`kaiza tools`: the tools that agents can be offered, from the schema files."""

import argparse
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kaiza.cli.console import arguments, output
from kaiza.domain.roles import describe_role
from kaiza.domain.tool_card import ToolCard, ToolOffer
from kaiza.queries.tool_schemas import SchemaRegistry
from kaiza.render.tables import Cell, Column, render_table

_COLUMNS = (
    Column("tool"),
    Column("for"),
    Column("does"),
    Column("category"),
    Column("title", moves_below=True),
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "List the tools that agents can be offered: the roles that may call each, and whether it reads, writes "
        "Kaiza's own files, or changes the workspace.",
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
    """Tools that a server wraps in the boundary, taken from a real server's handlers and not from the catalog."""
    from kaiza.app import App  # noqa: PLC0415  imports every tool; the table does not need it

    offer = ToolOffer(allowed={row["only_with"] for row in rows if "only_with" in row})
    return App([], offer=offer).wrapped_tools


def _tool_document(row: Mapping[str, Any], wrapped: Collection[str]) -> dict[str, Any]:
    """A catalog row with `name` in place of `id`, and what follows from it."""
    card = ToolCard.from_row(row)
    members = {key: value for key, value in row.items() if key != "id"}
    derived = {"tier": card.tier, "listed": card.listed, "aliases": list(card.aliases)}
    return {"name": card.name, **members, **derived, "wrapped": card.name in wrapped}


def _row_cells(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    style = "yellow" if row["safety_level"] == "change" else ""
    return (
        Cell(row["id"], "bold"),
        Cell(" ".join(map(describe_role, row["roles"]))),
        Cell(row["safety_level"], style),
        Cell(row["category"]),
        Cell(row["title"]),
    )
