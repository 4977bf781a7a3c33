"""`kaiza schema`: are the contract files as they must be, and by what is each tool's contract known."""

import argparse

import orjson

from kaiza.cli.console import arguments, output
from kaiza.domain import schema_lint
from kaiza.domain.schema_lint import SchemaFinding
from kaiza.render.tables import Cell, Column, render_table
from kaiza.store.config.schema_registry import SchemaRegistry

_COLUMNS = (Column("file"), Column("where"), Column("rule"), Column("write instead", min_width=20))


def add(parser: argparse.ArgumentParser) -> None:
    """The two commands."""
    commands = arguments.add_group(parser, "Check and fingerprint the tools' schemas.", "kaiza schema lint")
    checked = commands.add_parser("lint", help="are the schema files as they must be?", allow_abbrev=False)
    arguments.describe(
        checked,
        "Check every schema file and the catalog: JSON Schema 2020-12, closed, bounded, nothing filled in.\n"
        "Exit status: 0 nothing found, 1 findings.",
        "kaiza schema lint",
        run=_run_lint,
    )
    known = commands.add_parser("fingerprint", help="the SHA-256 of a tool's two schemas", allow_abbrev=False)
    arguments.describe(
        known,
        "Print the SHA-256 of each tool's input and output schema in canonical form.\n"
        "Exit status: 0 printed, 1 there is no such tool.",
        "kaiza schema fingerprint read_file",
        run=_run_fingerprint,
    )
    known.add_argument("tool", metavar="TOOL", nargs="?", help="only this one")
    for part in (checked, known):
        arguments.add_json(part)


def schema_findings(registry: SchemaRegistry) -> list[SchemaFinding]:
    """Everything about the contract files that breaks a rule."""
    found = [one for name in registry.file_names() for one in _file_findings(registry, name)]
    return [*found, *schema_lint.lint_catalog(registry.catalog(), registry.file_names())]


def _run_lint(args: argparse.Namespace) -> int:
    registry = SchemaRegistry()
    found = schema_findings(registry)
    if args.json:
        output.print_json({"findings": [one.as_json() for one in found]})
    elif found:
        output.print_lines(
            render_table(_COLUMNS, map(_row_cells, found), output.terminal_width(), colour=output.has_colour())
        )
    else:
        output.print_lines([f"{len(registry.file_names())} schema files and the catalog are as they must be."])
    return output.FAILURE if found else output.SUCCESS


def _file_findings(registry: SchemaRegistry, name: str) -> list[SchemaFinding]:
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415  heavy; listing fingerprints needs none

    try:
        document = registry.read_document(name)
        if isinstance(document, dict):
            Draft202012Validator.check_schema(document)
    except orjson.JSONDecodeError as error:
        return [SchemaFinding(name, "", "json", f"Make it JSON: {error}.")]
    except SchemaError as error:
        where = "".join(f"/{part}" for part in error.absolute_path)
        return [SchemaFinding(name, where, "json-schema", "Make it valid JSON Schema 2020-12.")]
    return schema_lint.lint(name, document, output=name.endswith(".output.json"))


def _run_fingerprint(args: argparse.Namespace) -> int:
    registry = SchemaRegistry()
    names = [args.tool] if args.tool else [row["id"] for row in registry.catalog()]
    try:
        known = {name: registry.fingerprint(name) for name in names}
    except KeyError as error:
        raise output.CommandError(f"There is no tool {error}. `kaiza tools` lists them.", output.FAILURE) from None
    if args.json:
        output.print_json({"fingerprints": [{"tool": name, "fingerprint": known[name]} for name in names]})
    elif args.tool:
        output.print_lines([known[args.tool]])
    else:
        output.print_lines(f"{mark}  {name}" for name, mark in known.items())
    return output.SUCCESS


def _row_cells(found: SchemaFinding) -> tuple[Cell, ...]:
    return Cell(found.file), Cell(found.where), Cell(found.rule, "yellow"), Cell(found.message)
