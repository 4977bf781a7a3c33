"""`kaiza context`: pack documents into caches that agents search, and look at these caches."""

import argparse

from kaiza.cli.console import arguments
from kaiza.cli.context import build, list_inspect, remove, resolve


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    commands = arguments.add_group(
        parser,
        "Pack documents into caches. An agent that asks one a question gets the same documents each time, within a "
        "budget of tokens.",
        "kaiza context build docs --source docs",
    )
    for module in (build, list_inspect, resolve, remove):
        module.add(commands)
