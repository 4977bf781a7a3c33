"""`kaiza schema`: check the schema files, and print the fingerprint of each tool's schemas."""

import argparse
from collections.abc import Iterator, Mapping

from kaiza.cli.console import arguments, output
from kaiza.domain.refusal import RefusedError
from kaiza.domain.schema_lint import SchemaFinding
from kaiza.queries.tool_schemas import SchemaRegistry, find_schema_faults
from kaiza.render.tables import Cell, Column, render_table

_COLUMNS = (Column("file"), Column("where"), Column("rule"), Column("write instead", moves_below=True))


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    commands = arguments.add_group(parser, "Check and fingerprint the tools' schemas.", "kaiza schema lint")
    lint = commands.add_parser("lint", help="check the schema files and the catalog")
    arguments.describe(
        lint,
        "Check every schema file and the catalog: valid JSON Schema 2020-12, no additional properties, bounded sizes, "
        "no defaults.\n"
        "Exit status: 0 no findings, 1 findings.",
        "kaiza schema lint",
        run=_run_lint,
    )
    fingerprint = commands.add_parser("fingerprint", help="print the SHA-256 of a tool's schemas")
    arguments.describe(
        fingerprint,
        "Print the SHA-256 of each tool's input and output schema in canonical form.\n"
        "Exit status: 0 printed, 1 no such tool.",
        "kaiza schema fingerprint read_file",
        run=_run_fingerprint,
    )
    fingerprint.add_argument("tool", metavar="TOOL", nargs="?", help="only this tool")
    for part in (lint, fingerprint):
        arguments.add_json(part)


def _run_lint(args: argparse.Namespace) -> int:
    registry = SchemaRegistry()
    findings = find_schema_faults(registry)
    if args.json:
        output.print_json({"findings": [finding.as_json() for finding in findings]})
    elif findings:
        rows = map(_row_cells, findings)
        output.print_lines(render_table(_COLUMNS, rows, output.terminal_width(), colour=output.has_colour()))
    else:
        output.print_lines([f"{len(registry.file_names())} schema files and the catalog are valid."])
    return output.FAILURE if findings else output.SUCCESS


def _run_fingerprint(args: argparse.Namespace) -> int:
    registry = SchemaRegistry()
    names = [args.tool] if args.tool else [row["id"] for row in registry.catalog()]
    try:
        fingerprints = {name: registry.fingerprint(name) for name in names}
    except KeyError as error:
        raise RefusedError(f"There is no tool {error}. `kaiza tools` lists the tools.") from None
    if args.json:
        output.print_json({"fingerprints": [{"tool": name, "fingerprint": fingerprints[name]} for name in names]})
    elif args.tool:
        output.print_lines([fingerprints[args.tool]])
    else:
        output.print_lines(_format_fingerprints(fingerprints, output.terminal_width()))
    return output.SUCCESS


def _format_fingerprints(fingerprints: Mapping[str, str], width: int | None) -> Iterator[str]:
    """Each fingerprint and its tool; on two lines where the terminal is too narrow for one."""
    lines = [f"{fingerprint}  {name}" for name, fingerprint in fingerprints.items()]
    if width is None or max(map(len, lines)) <= width:
        yield from lines
        return
    for name, fingerprint in fingerprints.items():
        yield from (name, f"  {fingerprint}")


def _row_cells(finding: SchemaFinding) -> tuple[Cell, ...]:
    return Cell(finding.file), Cell(finding.where), Cell(finding.rule, "yellow"), Cell(finding.message)
