"""`kaiza audit`: verify, read and export the audit log."""

import argparse

from kaiza.cli.audit import accept, export, show, verify
from kaiza.cli.console import arguments


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    commands = arguments.add_group(parser, "Verify, read and export the audit log.", "kaiza audit verify")
    for module in (verify, show, export, accept):
        module.add(commands)
