"""What the command line has, read off the code: subcommands, and the exit statuses that each help tells."""

import argparse
import re
from importlib import import_module

from kaiza.cli import dispatch


def subcommands(name):
    """The commands below a command."""
    return list(_below(_parser(name)))


def statuses(name):
    """The exit statuses that a command's help and the helps below it tell, 0 always, 2 of any wrong command line."""
    parser = _parser(name)
    helps = [one.format_help() for one in (parser, *_below(parser).values())]
    told = [text.split("Exit status:")[1].split("\n\n")[0] for text in helps if "Exit status:" in text]
    return sorted({"0", "2", *re.findall(r"(?<![\w-])[0-3](?= )", " ".join(told))})


def _parser(name):
    parser = argparse.ArgumentParser(prog=f"kaiza {name}", allow_abbrev=False)
    import_module(dispatch.COMMANDS[name][0]).add(parser)
    return parser


def _below(parser):
    nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {word: below for action in nested for word, below in action.choices.items()}
