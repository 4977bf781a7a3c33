"""`kaiza` without a command: help, the version, or an error with a hint."""

import shutil
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import version

from kaiza.cli.dispatch import COMMANDS
from kaiza.render.terminal import wrap_words

_SUMMARY = (
    "Kaiza lets a coding agent change files only under a plan that you approved, and records every call. "
    "This command line shows, verifies and undoes what agents did."
)
_HELP = """\
usage: kaiza COMMAND ...
       kaiza version

{summary}

commands:
{commands}

options:
  -h, --help  show this help
  --version   print the version, as `kaiza version` does

example:
  kaiza audit tail -f

`kaiza COMMAND --help` describes a command.
Exit status: 0 success, 1 failure, 2 usage error, 3 could not determine.
"""


def run(argv: Sequence[str]) -> int:
    """Print the overview or the version; an unknown command and no command are usage errors."""
    if argv and argv[0] in {"-h", "--help", "help"}:
        sys.stdout.write(_overview_text())
        return 0
    if argv and argv[0] in {"--version", "version"}:
        sys.stdout.write(f"kaiza {version('kaiza')}\n")
        return 0
    sys.stderr.write(_unknown_command(argv[0]) if argv else _overview_text())
    return 2


def _overview_text() -> str:
    room = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name.ljust(room)}  {text}" for name, (_, text) in COMMANDS.items())
    return _wrap(_HELP.format(summary=_SUMMARY, commands=commands))


def _unknown_command(word: str) -> str:
    near = get_close_matches(word, [*COMMANDS, "version", "--version"], n=1)
    hint = f"Did you mean `kaiza {near[0]}`?" if near else "`kaiza --help` lists the commands."
    return _wrap(f"kaiza: there is no command {word!r}. {hint}\n")


def _wrap(text: str) -> str:
    columns = shutil.get_terminal_size().columns
    return "\n".join(part for line in text.split("\n") for part in wrap_words(line, columns, ""))
