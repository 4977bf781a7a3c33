"""`kaiza tools`: what an agent can be offered, from the contract files."""

import argparse
from collections.abc import Mapping
from typing import Any

from kaiza.cli import options, say
from kaiza.render.tables import Cell, Column, lines
from kaiza.store.schemas import SchemaRegistry

_COLUMNS = (
    Column("tool"),
    Column("for"),
    Column("does"),
    Column("category"),
    Column("title", least=16),
)


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    options.describe(
        parser,
        "Every tool that an agent can be offered: for which role, and whether it reads, keeps a note, or changes files.",
        "kaiza tools --json | jq '.tools[].name'",
        run=_list,
    )
    options.as_json(parser)


def _list(args: argparse.Namespace) -> int:
    rows = SchemaRegistry().catalog()
    if args.json:
        say.document({"tools": [_told(row) for row in rows]})
    else:
        say.lines(lines(_COLUMNS, map(_cells, rows), say.width(), colour=say.colour()))
    return say.YES


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    """A tool is known by its name; each of them is called through the boundary, and through nothing else."""
    return {"name": row["id"], **{key: value for key, value in row.items() if key != "id"}, "wrapped": True}


def _cells(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    style = "yellow" if row["safety_level"] == "change" else ""
    return (
        Cell(row["id"], "bold"),
        Cell(" ".join(row["roles"])),
        Cell(row["safety_level"], style),
        Cell(row["category"]),
        Cell(row["title"]),
    )
