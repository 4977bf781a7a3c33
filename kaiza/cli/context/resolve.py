"""`kaiza context resolve`: print what an agent gets from a cache, byte for byte."""

import argparse
from dataclasses import dataclass, field

import orjson

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import resolve_root
from kaiza.cli.context.cache_name import add_cache_name, to_command_error
from kaiza.domain import errors
from kaiza.domain.caps import Caps
from kaiza.domain.context.arguments import parse_budget, parse_query
from kaiza.store.context.cache_files import ContextCaches
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.tools.context import context_resolve
from kaiza.tools.view import Answer


@dataclass(frozen=True)
class CommandView(ContextCaches):
    """The caches as a context tool sees them, without a time limit."""

    caps: Caps = field(default_factory=Caps)

    def is_out_of_time(self) -> bool:
        """False: a person interrupts a command that takes too long."""
        return False


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("resolve", help="print what an agent gets for a query")
    arguments.describe(
        parser,
        "Print the documents of a cache that match a query best and fit into a budget, as JSON: exactly what an agent "
        "gets from context_resolve. Not recorded.\n"
        "Exit status: 0 resolved, 1 no such cache, an invalid one, or an answer that is too large, 3 the cache could "
        "not be read.",
        "kaiza context resolve docs --query tokens --budget 4000",
        run=_run_resolve,
    )
    add_cache_name(parser)
    parser.add_argument("--query", metavar="WORDS", type=_parse_query, required=True, help="words to look for")
    parser.add_argument(
        "--budget", metavar="TOKENS", type=_parse_budget, required=True, help="most tokens; one is four bytes"
    )
    parser.add_argument("--pretty", action="store_true", help="indent the JSON")
    arguments.add_workspace(parser)


def _parse_query(text: str) -> str:
    try:
        return parse_query({"query": text})
    except errors.SystemError as error:
        raise argparse.ArgumentTypeError(error.human_message) from error


def _parse_budget(text: str) -> int:
    try:
        return parse_budget({"budget": int(text) if text.isascii() and text.isdecimal() else text})
    except (errors.SystemError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 100000") from error


def _run_resolve(args: argparse.Namespace) -> int:
    answer = _resolve(args)
    if args.pretty:
        output.print_json(answer.output)
    else:
        output.write_json_line(orjson.dumps(answer.output))
    return output.SUCCESS


def _resolve(args: argparse.Namespace) -> Answer:
    with ConfinedRoot(resolve_root(args)) as root:
        try:
            request = context_resolve.Request(args.cache, args.query, args.budget)
            return context_resolve.run(request, CommandView(root.fd))
        except errors.SystemError as error:
            raise to_command_error(error, args.cache) from error
