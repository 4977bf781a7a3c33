"""`kaiza audit`: the record, for the person who answers for it."""

import argparse

from kaiza.cli import audit_accept, audit_export, audit_show, audit_tail, audit_verify, options


def add(parser: argparse.ArgumentParser) -> None:
    """The commands about the record."""
    commands = options.add_group(parser, "Verify, read and keep the record.", "kaiza audit verify")
    for part in (audit_verify, audit_show, audit_tail, audit_export, audit_accept):
        part.add(commands)
