"""`kaiza audit export`: records as they are, byte for byte, for somebody else to verify."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from kaiza.cli.console import arguments, audit_reader, output, record_filter


def add(commands: arguments.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("export", help="write records out, byte for byte", allow_abbrev=False)
    arguments.describe(
        parser,
        "Write the selected records as they stand in the log, a line of JSON each.\n"
        "Every line can be checked on its own: its last member is the SHA-256 of the rest.",
        "kaiza audit export --since 7d --output week.jsonl\nkaiza audit export --session 3f2b | jq .tool_name",
        run=_run_export,
    )
    parser.add_argument("--output", metavar="FILE", help="a new file (default: standard output)")
    record_filter.add_arguments(parser)
    arguments.add_workspace(parser)


def _run_export(args: argparse.Namespace) -> int:
    lines = _selected_lines(arguments.resolve_root(args), record_filter.from_arguments(args))
    if args.output is None:
        for line in lines:
            output.write_json_bytes(line)
    else:
        count = _write_file(Path(args.output), lines)
        output.print_error(f"{count:,} {'line' if count == 1 else 'lines'} written to {args.output}.")
    return output.SUCCESS


def _selected_lines(root: str, wanted: record_filter.RecordFilter) -> Iterator[bytes]:
    """Without a selection every line, also one that is no record any more: it is evidence."""
    everything = wanted == record_filter.MATCH_ALL
    for line, record in audit_reader.raw_lines(root):
        if everything or (record is not None and wanted.matches(record)):
            yield line


def _write_file(target: Path, lines: Iterator[bytes]) -> int:
    count = 0
    try:
        with target.open("xb") as file:
            for line in lines:
                file.write(line)
                count += 1
    except FileExistsError:
        raise output.CommandError(
            f"{target} is there already. Name another file with --output.", output.FAILURE
        ) from None
    return count
