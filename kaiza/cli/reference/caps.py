"""`kaiza caps`: every limit on time and size, from the running code."""

import argparse

from kaiza.cli.console import arguments as options
from kaiza.cli.console import output as say
from kaiza.domain.caps import Caps


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    options.describe(
        parser,
        "Every limit on time and size, with its value: bytes, milliseconds, hours or counts, as the name says.",
        "kaiza caps --json | jq .response_bytes",
        run=_run_list,
    )
    options.add_json(parser)


def _run_list(args: argparse.Namespace) -> int:
    caps = Caps().as_json()
    if args.json:
        say.print_json(caps)
    else:
        say.print_lines(say.format_fields((name, f"{value:,}".rjust(10)) for name, value in caps.items()))
    return say.SUCCESS
