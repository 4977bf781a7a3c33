"""`kaiza plan`: what agents may change, and the person who decides it."""

import argparse

from kaiza.cli.console import arguments
from kaiza.cli.plan import approve, lint, list_plans, new, reject_revoke, show


def add(parser: argparse.ArgumentParser) -> None:
    """The commands about plans."""
    commands = arguments.add_group(
        parser, "What agents may change: write, read, check, approve and take back plans.", "kaiza plan list"
    )
    for part in (list_plans, show, new, lint, approve, reject_revoke):
        part.add(commands)
