"""`kaiza audit`: the record, for the person who answers for it."""

import argparse

from kaiza.cli.audit import accept as audit_accept
from kaiza.cli.audit import export as audit_export
from kaiza.cli.audit import show as audit_show
from kaiza.cli.audit import tail as audit_tail
from kaiza.cli.audit import verify as audit_verify
from kaiza.cli.console import arguments as options


def add(parser: argparse.ArgumentParser) -> None:
    """The commands about the record."""
    commands = options.add_group(parser, "Verify, read and keep the record.", "kaiza audit verify")
    for part in (audit_verify, audit_show, audit_tail, audit_export, audit_accept):
        part.add(commands)
