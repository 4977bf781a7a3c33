"""`kaiza audit`: the record, for the person who answers for it."""

import argparse

from kaiza.cli.audit import accept, export, show, tail, verify
from kaiza.cli.console import arguments


def add(parser: argparse.ArgumentParser) -> None:
    """The commands about the record."""
    commands = arguments.add_group(parser, "Verify, read and keep the record.", "kaiza audit verify")
    for part in (verify, show, tail, export, accept):
        part.add(commands)
