"""Parser, help layout and options that commands share.

`kaiza serve` needs this before it answers, so nothing heavy is imported until help or an error is printed.
"""

import argparse
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeAlias

from kaiza.domain import roles

CommandAction = Callable[[argparse.Namespace], int]
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001  it has no other name
MAX_REASON = 1000
_NO_BREAK = "\x01"


class HelpFormatter(argparse.HelpFormatter):
    """Help wrapped to the terminal. Commands in backticks are not broken; indented lines (examples) are kept."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(f"{indent}{part}" for line in text.splitlines() for part in _wrap(line, width))

    def _split_lines(self, text: str, width: int) -> list[str]:
        return list(_wrap(text, width))


class CommandParser(argparse.ArgumentParser):
    """An argument parser without abbreviations, whose errors are wrapped to the terminal too."""

    def __init__(self, **options: object) -> None:
        super().__init__(**{"allow_abbrev": False, "formatter_class": HelpFormatter, **options})  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error; end with 2."""
        self.print_usage(sys.stderr)
        from kaiza.render.terminal import escape  # noqa: PLC0415  only errors need it

        # The message holds words of the command line, which may be the name of a file that an agent made.
        lines = _wrap(f"{self.prog}: error: {escape(message)}", shutil.get_terminal_size().columns)
        self.exit(2, "\n".join(lines) + "\n")


def describe(parser: argparse.ArgumentParser, text: str, example: str, *, run: CommandAction | None = None) -> None:
    """Give a command its description (one paragraph a line), its examples, and the function that runs it."""
    parser.formatter_class = HelpFormatter
    # "0 success" stays together, so that the status and its meaning are on the same line.
    parser.description = re.sub(r"(?<=\b[0-3]) (?=\w)", _NO_BREAK, text)
    parser.epilog = "example:\n" + "\n".join(f"  {line}" for line in example.splitlines())
    if run is not None:
        parser.set_defaults(act=run, parser=parser)


def add_group(parser: argparse.ArgumentParser, text: str, example: str) -> Subparsers:
    """Make a command one that has subcommands."""
    describe(parser, text, example)
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="subcommand")


def add_role(parser: "argparse.ArgumentParser | argparse._ArgumentGroup", text: str, action: str = "store") -> None:
    """Add `--role`, which takes a role by its word or by its name in calls."""
    parser.add_argument(
        "--role",
        type=roles.parse_role,
        choices=roles.ROLES,
        metavar=f"{{{','.join(roles.WORDS)}}}",
        action=action,
        help=text,
    )


def add_workspace(parser: argparse.ArgumentParser) -> None:
    """Add `--workspace DIR`."""
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        help="the workspace (default: this directory or the nearest one above it that has plans/ and audit/)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_operator(parser: argparse.ArgumentParser) -> None:
    """Add `--as NAME`."""
    parser.add_argument(
        "--as", dest="name", metavar="NAME", help="your name (default: git's user.name, else your login)"
    )


def parse_reason(text: str) -> str:
    """A reason that a person gives for a decision: not blank, at most MAX_REASON characters."""
    if not text.strip() or len(text) > MAX_REASON:
        raise argparse.ArgumentTypeError(f"give a reason of at most {MAX_REASON} characters")
    return text


def _wrap(text: str, width: int) -> Iterator[str]:
    if text.startswith(" "):
        yield text
        return
    from kaiza.render.terminal import wrap_words  # noqa: PLC0415  only help and errors need it

    for line in wrap_words(text, width, ""):
        yield line.replace(_NO_BREAK, " ")
