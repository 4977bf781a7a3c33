"""`kaiza caps`: every limit on time and size, from the running code."""

import argparse

from kaiza.cli.console import arguments, output
from kaiza.domain.caps import Caps


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    arguments.describe(
        parser,
        "Every limit on time and size, with its value: bytes, milliseconds, hours or counts, as the name says.",
        "kaiza caps --json | jq .response_bytes",
        run=_run_list,
    )
    arguments.add_json(parser)


def _run_list(args: argparse.Namespace) -> int:
    caps = Caps().as_json()
    if args.json:
        output.print_json(caps)
    else:
        output.print_lines(output.format_fields((name, f"{value:,}".rjust(10)) for name, value in caps.items()))
    return output.SUCCESS
