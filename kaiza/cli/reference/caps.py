"""`kaiza caps`: the limits on time and size, from the running code."""

import argparse

from kaiza.cli.console import arguments, output
from kaiza.domain.caps import Caps


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "List the limits on time and size. The unit is in the name: bytes, milliseconds, hours, else a count.",
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
