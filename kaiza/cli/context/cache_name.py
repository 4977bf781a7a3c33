"""Name of a context cache on the command line, and errors of reading the cache."""

import argparse

from kaiza.cli.console import output
from kaiza.domain import errors
from kaiza.domain.context.arguments import is_cache_name

_FAILURE_CODES = frozenset({"CONTEXT_CACHE_INVALID", "CONTEXT_BUDGET_INVALID"})


def add_cache_name(parser: argparse.ArgumentParser) -> None:
    """Add the name."""
    parser.add_argument("cache", metavar="NAME", type=_parse_name, help="the cache's name")


def to_command_error(error: errors.SystemError, name: str) -> output.CommandError:
    """The error of a cache, with its exit status."""
    if error.error_code == "CONTEXT_CACHE_MISSING":
        return missing_cache(name)
    status = output.FAILURE if error.error_code in _FAILURE_CODES else output.UNDETERMINED
    return output.CommandError(f"{name}: {error.human_message}", status)


def missing_cache(name: str) -> output.CommandError:
    """The error for a cache that does not exist or cannot be reached."""
    return output.CommandError(f"There is no context cache {name}. `kaiza context list` lists them.", output.FAILURE)


def _parse_name(text: str) -> str:
    if not is_cache_name(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a valid name. Use lower-case letters, digits, dots, hyphens and underscores, at most 64, "
            "a letter or digit first"
        )
    return text
