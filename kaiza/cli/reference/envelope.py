"""`kaiza envelope check`: what is wrong with a JSON-RPC request, and where."""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kaiza.cli.console import arguments, output
from kaiza.queries.tool_schemas import SchemaRegistry
from kaiza.render.tables import Cell, Column, render_table
from kaiza.wire import framing

_COLUMNS = (Column("where"), Column("rule"), Column("write instead", moves_below=True))
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_FIXES = {
    "": "Write one JSON object. Batches are refused.",
    "/id": "Use a string that is not empty.",
    "/jsonrpc": 'Use "2.0", a string.',
    "/method": "Use a string that is not empty.",
    "/params": "Use a JSON object.",
}


class EnvelopeFault(NamedTuple):
    """One fault of a request: JSON pointer, rule, and what to write instead."""

    where: str
    rule: str
    message: str


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand."""
    commands = arguments.add_group(parser, "Check JSON-RPC requests.", "kaiza envelope check request.json")
    check = commands.add_parser("check", help="check one request")
    arguments.describe(
        check,
        "Check one JSON-RPC request against the published schema of the envelope, schemas/mcp/envelope.schema.json. "
        "The method's own parameters are not checked.\n"
        "Exit status: 0 valid, 1 not valid, 3 the file could not be read.",
        "kaiza envelope check request.json --strict",
        run=_run_check,
    )
    check.add_argument("file", metavar="FILE", nargs="?", type=Path, help="the request (default: standard input)")
    check.add_argument("--strict", action="store_true", help="refuse a number as id, which the server accepts")
    check.add_argument("--deterministic", action="store_true", help="require a UUID as id")
    arguments.add_json(check)


def _run_check(args: argparse.Namespace) -> int:
    error_code, faults = _find_faults(_read_request(args.file), strict=args.strict, deterministic=args.deterministic)
    if args.json:
        listed = [fault._asdict() for fault in faults]
        output.print_json({"valid": error_code is None, "error_code": error_code, "faults": listed})
    elif error_code is None:
        output.print_lines(["The request is valid."])
    else:
        output.print_lines([f"{error_code}: the request is not valid."])
        rows = ((Cell(fault.where or "/"), Cell(fault.rule, "yellow"), Cell(fault.message)) for fault in faults)
        output.print_lines(render_table(_COLUMNS, rows, output.terminal_width(), colour=output.has_colour()))
    return output.SUCCESS if error_code is None else output.FAILURE


def _read_request(file: Path | None) -> bytes:
    """The request's bytes, without the newline that ends a line; one byte more than is allowed if there are more."""
    limit = framing.MAX_LINE + 2
    if file is None:
        return sys.stdin.buffer.read(limit).removesuffix(b"\n")
    with file.open("rb") as stream:
        return stream.read(limit).removesuffix(b"\n")


def _find_faults(content: bytes, *, strict: bool, deterministic: bool) -> tuple[str | None, list[EnvelopeFault]]:
    """The error code with which the server refuses the request, None for a valid one, and its faults."""
    if len(content) > framing.MAX_LINE:
        return "INVALID_ENVELOPE", [EnvelopeFault("", "size", f"Write at most {framing.MAX_LINE:,} bytes.")]
    try:
        request = framing.decode(content)
    except ValueError:
        message = "Write one JSON value in UTF-8, without duplicate keys and NaN, nested 100 levels deep at most."
        return "PARSE_ERROR", [EnvelopeFault("", "json", message)]
    faults = sorted({*_find_schema_faults(request, strict=strict), *_find_id_faults(request, required=deterministic)})
    return ("INVALID_ENVELOPE" if faults else None), faults


def _find_schema_faults(request: object, *, strict: bool) -> Iterator[EnvelopeFault]:
    for error in SchemaRegistry().load_envelope().iter_errors(request if strict else _with_text_id(request)):
        where = "".join(f"/{step}" for step in error.absolute_path)
        if error.validator != "required":
            yield EnvelopeFault(where, str(error.validator), _FIXES[where])
            continue
        required: Any = error.validator_value
        for name in set(required).difference(request if isinstance(request, dict) else ()):
            yield EnvelopeFault(f"/{name}", "required", f"Add {name}.")


def _with_text_id(request: object) -> object:
    """The request with a number as id turned into text, as the server does before it checks."""
    raw_id = request.get("id") if isinstance(request, dict) else None
    if not isinstance(request, dict) or not isinstance(raw_id, int | float) or isinstance(raw_id, bool):
        return request
    return {**request, "id": str(raw_id)}


def _find_id_faults(request: object, *, required: bool) -> Iterator[EnvelopeFault]:
    """A fault if a UUID is `required` and the id is another text. Any other type is a fault of the schema already."""
    raw_id = request.get("id") if isinstance(request, dict) else None
    if required and isinstance(raw_id, str | int | float) and not _UUID.fullmatch(str(raw_id)):
        yield EnvelopeFault("/id", "uuid", "Use a UUID.")
