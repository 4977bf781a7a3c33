"""Subcommands of the command line, and the exit statuses that their help documents."""

import argparse
import re
from importlib import import_module

from kaiza.cli import dispatch


def subcommands(name):
    """Names of the subcommands of a command."""
    return list(_subparsers(_parser(name)))


def statuses(name):
    """The documented exit statuses of a command and its subcommands; every command has 0 and 2."""
    parser = _parser(name)
    helps = [command.format_help() for command in (parser, *_subparsers(parser).values())]
    sections = [text.split("Exit status:")[1].split("\n\n")[0] for text in helps if "Exit status:" in text]
    return sorted({"0", "2", *re.findall(r"(?<![\w-])[0-3](?= )", " ".join(sections))})


def _parser(name):
    parser = argparse.ArgumentParser(prog=f"kaiza {name}", allow_abbrev=False)
    import_module(dispatch.COMMANDS[name][0]).add(parser)
    return parser


def _subparsers(parser):
    nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {name: subparser for action in nested for name, subparser in action.choices.items()}
