"""What `kaiza` says when it is asked for nothing, for help, for its version, or for something it does not have."""

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import version

from kaiza.cli.dispatch import COMMANDS


def run(argv: Sequence[str]) -> int:
    """The overview or the version on standard output; what is not understood, with a hint, on standard error."""
    if argv and argv[0] in {"-h", "--help", "help"}:
        sys.stdout.write(_overview_text())
        return 0
    if argv and argv[0] == "--version":
        sys.stdout.write(f"kaiza {version('kaiza')}\n")
        return 0
    sys.stderr.write(_unknown_command(argv[0]) if argv else _overview_text())
    return 2


def _overview_text() -> str:
    room = max(map(len, COMMANDS))
    listed = "".join(f"  {name.ljust(room)}  {what}\n" for name, (_, what) in COMMANDS.items())
    return (
        "usage: kaiza COMMAND ...\n\n"
        "The permission slip and the flight recorder for coding agents.\n\n"
        f"commands:\n{listed}\n"
        "example:\n  kaiza audit tail -f\n\n"
        "`kaiza COMMAND --help` says more. Exit status: 0 yes, 1 no, 2 wrong command line, 3 could not tell.\n"
    )


def _unknown_command(word: str) -> str:
    near = get_close_matches(word, COMMANDS, n=1)
    hint = f"Did you mean `kaiza {near[0]}`?" if near else "`kaiza --help` lists the commands."
    return f"kaiza: there is no command {word!r}. {hint}\n"
