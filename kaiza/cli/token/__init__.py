"""`kaiza token`: tokens with which agents use a workspace over HTTP."""

import argparse

from kaiza.cli.console import arguments
from kaiza.cli.token import list_tokens, new, revoke


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    commands = arguments.add_group(
        parser, "Tokens with which agents use this workspace over HTTP: make, list and revoke them.", "kaiza token list"
    )
    for module in (new, list_tokens, revoke):
        module.add(commands)
