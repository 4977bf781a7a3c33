"""`kaiza audit accept`: a person has looked at a damaged record, and begins a new one."""

import argparse

from kaiza.cli import audit_verify, options, person, place, say
from kaiza.cli.word import ask_word
from kaiza.render import verdict
from kaiza.store import audit_log


def add(commands: options.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser(
        "accept", help="after damage: keep the old log aside, begin a new one", allow_abbrev=False
    )
    options.describe(
        parser,
        "After damage: move the log aside as audit/audit-log.damaged-<n>.jsonl and begin a new one, whose first record\n"
        "names the old head, the verdict, the old file's hash, your reason and you. Asks for your word at the terminal.\n"
        "Exit status: 0 accepted, 1 not accepted or nothing to accept, 3 no terminal to ask at.",
        'kaiza audit accept --reason "restored from backup by mistake, compared with the copy of Monday"',
        run=_accept,
    )
    parser.add_argument("--reason", required=True, type=_reason, help="what you found and why it is all right to go on")
    parser.add_argument(
        "--as", dest="name", metavar="NAME", help="who you are (default: git's user.name, else your login)"
    )
    options.workspace(parser)
    options.as_json(parser)
