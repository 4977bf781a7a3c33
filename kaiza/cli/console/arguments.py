"""What several commands take alike: the workspace, `--json`, and a help text with an example."""

import argparse
from collections.abc import Callable
from typing import TypeAlias

CommandAction = Callable[[argparse.Namespace], int]
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001  it has no other name


def describe(parser: argparse.ArgumentParser, what: str, example: str, *, run: CommandAction | None = None) -> None:
    """Give a command its description, its example, and what it does."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = what
    parser.epilog = "example:\n" + "\n".join(f"  {line}" for line in example.splitlines())
    if run is not None:
        parser.set_defaults(act=run, parser=parser)


def add_group(parser: argparse.ArgumentParser, what: str, example: str) -> Subparsers:
    """A command that has commands of its own."""
    describe(parser, what, example)
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="subcommand")


def add_workspace(parser: argparse.ArgumentParser) -> None:
    """`--workspace DIR`, else the nearest directory upwards that is one."""
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        help="the workspace (default: the nearest directory upwards that has plans/ and audit/)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_operator(parser: argparse.ArgumentParser) -> None:
    """`--as NAME`."""
    parser.add_argument(
        "--as", dest="name", metavar="NAME", help="who you are (default: git's user.name, else your login)"
    )
