"""`kaiza plan`: write, review, approve and revoke the plans that say what agents may change."""

import argparse

from kaiza.cli.console import arguments
from kaiza.cli.plan import approve, lint, list_show, new, reject_revoke


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    commands = arguments.add_group(
        parser, "Plans say what agents may change: write, review, approve and revoke them.", "kaiza plan list"
    )
    for module in (list_show, new, lint, approve, reject_revoke):
        module.add(commands)
