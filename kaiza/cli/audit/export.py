"""`kaiza audit export`: write records byte for byte, so that others can verify them."""

import argparse
from pathlib import Path

from kaiza.cli.console import arguments, audit_reader, output, record_filter
from kaiza.cli.console.open_workspace import resolve_root
from kaiza.domain.refusal import RefusedError
from kaiza.render.terminal import format_count


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("export", help="write records byte for byte")
    arguments.describe(
        parser,
        "Write the selected records exactly as they are in the log, one line of JSON each. Every line can be verified "
        "on its own: its last member is the SHA-256 of the rest.\n"
        "Exit status: 0 written, 1 the output file exists already.",
        "kaiza audit export --since 7d --output week.jsonl\nkaiza audit export --session 3f2b | jq .tool_name",
        run=_run_export,
    )
    parser.add_argument("--output", metavar="FILE", help="a new file (default: standard output)")
    record_filter.add_arguments(parser)
    arguments.add_workspace(parser)


def _run_export(args: argparse.Namespace) -> int:
    root = resolve_root(args)
    selection = record_filter.from_arguments(args, root)
    # Without a filter every line, because a damaged one is evidence.
    is_unfiltered = selection == record_filter.MATCH_ALL
    lines = (
        line
        for line, record in audit_reader.raw_lines(root)
        if is_unfiltered or (record is not None and selection.matches(record))
    )
    if args.output is None:
        for line in lines:
            output.write_json_bytes(line)
        return output.SUCCESS
    count = 0
    try:
        with Path(args.output).open("xb") as file:
            for line in lines:
                file.write(line)
                count += 1
    except FileExistsError:
        raise RefusedError(f"{args.output} exists already. Name another file with --output.") from None
    output.print_error(f"Wrote {format_count(count, 'line')} to {args.output}")
    return output.SUCCESS
