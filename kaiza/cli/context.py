"""`kaiza context`: pack documents into caches that agents search, and look at these caches."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import open_workspace, resolve_root
from kaiza.decisions import build_cache, remove_cache
from kaiza.domain import errors
from kaiza.domain.context.arguments import is_cache_name, parse_budget, parse_query
from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.glob_parser import GlobError
from kaiza.queries.context_caches import open_caches
from kaiza.queries.context_sources import LeftOut, find_build, is_changed, resolve_sources
from kaiza.queries.workspaces import find_person_name
from kaiza.render.terminal import escape, format_count, wrap
from kaiza.tools.context import context_inspect_cache, context_list_caches, context_resolve

_DEFAULT_GLOB = "**/*.md"
_MAX_SHOWN = 20
_FAILURE_CODES = frozenset({"CONTEXT_CACHE_INVALID", "CONTEXT_BUDGET_INVALID"})


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    commands = arguments.add_group(
        parser,
        "Pack documents into caches. An agent that asks one a question gets the same documents each time, within a "
        "budget of tokens.",
        "kaiza context build docs --source docs",
    )
    _add_build(commands)
    listing = commands.add_parser("list", help="list the caches")
    arguments.describe(listing, "List the context caches of the workspace.", "kaiza context list", run=_run_list)
    inspect = commands.add_parser("inspect", help="verify a cache, and compare it with its sources")
    arguments.describe(
        inspect,
        "Verify a cache, and say whether its sources have changed since it was built here.\n"
        "Exit status: 0 sound, 1 invalid or no such cache, 3 the cache could not be read.",
        "kaiza context inspect docs",
        run=_run_inspect,
    )
    _add_name(inspect)
    _add_resolve(commands)
    remove = commands.add_parser("remove", help="remove a cache")
    arguments.describe(
        remove,
        "Remove a cache. Its sources are left alone. A directory that holds anything but a cache is left alone too. "
        "Recorded; no confirmation is needed, because a cache can be built again.\n"
        "Exit status: 0 removed, 1 there is no such cache, or the directory holds something else.",
        "kaiza context remove docs",
        run=_run_remove,
    )
    _add_name(remove)
    arguments.add_operator(remove)
    for command in (listing, inspect, remove):
        arguments.add_workspace(command)
        arguments.add_json(command)


def _add_build(commands: arguments.Subparsers) -> None:
    parser = commands.add_parser("build", help="pack documents into a cache")
    arguments.describe(
        parser,
        "Pack the Markdown files below one or several directories into a cache for agents. Links are not followed. "
        "Files that agents may not read, or that .gitignore excludes, are left out and named. A secret in a document "
        "stops the build. Recorded; no confirmation is needed.\n"
        "Exit status: 0 built, 1 refused, nothing changed.",
        "kaiza context build docs --source docs --source specs\nkaiza context build docs --source docs --force",
        run=_run_build,
    )
    _add_name(parser)
    parser.add_argument("--source", metavar="DIR", action="append", required=True, help="a directory of documents")
    parser.add_argument(
        "--glob",
        metavar="GLOB",
        type=_parse_glob,
        default=_DEFAULT_GLOB,
        help=f"which files of a source to pack (default: {_DEFAULT_GLOB})",
    )
    parser.add_argument("--outside", action="store_true", help="allow sources outside the workspace")
    parser.add_argument("--force", action="store_true", help="replace the cache of this name")
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _add_resolve(commands: arguments.Subparsers) -> None:
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
    _add_name(parser)
    parser.add_argument("--query", metavar="WORDS", type=_parse_query, required=True, help="words to look for")
    parser.add_argument(
        "--budget", metavar="TOKENS", type=_parse_budget, required=True, help="most tokens; one is four bytes"
    )
    parser.add_argument("--pretty", action="store_true", help="indent the JSON")
    arguments.add_workspace(parser)


def _run_build(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        sources = resolve_sources(workspace.root, args.source, args.glob, is_outside_allowed=args.outside)
        proposal = build_cache.propose(workspace, args.cache, sources, replaces=args.force)
        person = find_person_name(args.name)
        with output.Progress("packing") as progress:
            decided = build_cache.decide(workspace, proposal, person, progress=progress)
    built, left_out = decided.built, decided.left_out
    if args.json:
        rows = [{"path": escape(each.path), "why": each.why} for each in left_out]
        output.print_json({**built, "left_out": rows})
    else:
        output.print_lines(_describe_left_out(left_out))
        output.print_sentences([f"Built {args.cache}: {format_count(built['document_count'], 'document')}."])
        output.print_lines(wrap([built["cache_version"]], output.terminal_width()))
    return output.SUCCESS


def _describe_left_out(left_out: list[LeftOut]) -> Iterator[str]:
    lines = (f"Left out: {escape(each.path)} ({each.why})" for each in left_out[:_MAX_SHOWN])
    yield from wrap(lines, output.terminal_width())
    if len(left_out) > _MAX_SHOWN:
        yield f"Left out: {len(left_out) - _MAX_SHOWN} more; --json lists all."


def _run_list(args: argparse.Namespace) -> int:
    with open_caches(resolve_root(args)) as view:
        listed = context_list_caches.run(context_list_caches.Request(), view).output
    if args.json:
        output.print_json(listed)
    elif listed["caches"]:
        for cache in listed["caches"]:
            output.print_lines([cache["path"] if cache["has_manifest"] else f"{cache['path']}  (no manifest)"])
    else:
        output.print_error("There are no context caches. `kaiza context build` builds one.")
    return output.SUCCESS


def _run_inspect(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace, open_caches(workspace.root) as view:
        try:
            inspected = context_inspect_cache.run(context_inspect_cache.Request(args.cache), view).output
        except errors.SystemError as error:
            raise _to_command_error(error, args.cache) from error
        built = find_build(workspace, args.cache, inspected["cache_version"]) if inspected["valid"] else None
        changed = None if built is None else is_changed(workspace, built)
    shown = {"cache": args.cache, **inspected, "sources": built and built["sources"], "changed": changed}
    if args.json:
        output.print_json(shown)
    else:
        _print_inspected(shown)
    return output.SUCCESS if inspected["valid"] else output.FAILURE


def _print_inspected(shown: Mapping[str, Any]) -> None:
    if not shown["valid"]:
        output.print_error(f"{shown['cache']} is invalid. Build it again with `kaiza context build --force`.")
        return
    state = {None: "unknown: it was not built here", True: "changed since it was built", False: "unchanged"}
    fields = {name: shown[name] for name in ("cache_version", "document_count", "total_bytes")}
    sources = ", ".join(shown["sources"] or ()) or None
    output.print_lines(
        output.format_fields([*fields.items(), ("sources", sources), ("state", state[shown["changed"]])])
    )


def _run_resolve(args: argparse.Namespace) -> int:
    request = context_resolve.Request(args.cache, args.query, args.budget)
    with open_caches(resolve_root(args)) as view:
        try:
            answer = context_resolve.run(request, view)
        except errors.SystemError as error:
            raise _to_command_error(error, args.cache) from error
    if args.pretty:
        output.print_json(answer.output)
    else:
        output.write_json_line(orjson.dumps(answer.output))
    return output.SUCCESS


def _run_remove(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        proposal = remove_cache.propose(workspace, args.cache)
        remove_cache.decide(workspace, proposal, find_person_name(args.name))
    if args.json:
        output.print_json({"cache": args.cache, "removed": True})
    else:
        output.print_sentences([f"Removed {args.cache}."])
    return output.SUCCESS


def _to_command_error(error: errors.SystemError, name: str) -> output.CommandError:
    """The error of a cache, with its exit status."""
    if error.error_code == "CONTEXT_CACHE_MISSING":
        message = f"There is no context cache {name}. `kaiza context list` lists them."
        return output.CommandError(message, output.FAILURE)
    status = output.FAILURE if error.error_code in _FAILURE_CODES else output.UNDETERMINED
    return output.CommandError(f"{name}: {error.human_message}", status)


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cache", metavar="NAME", type=_parse_name, help="the cache's name")


def _parse_name(text: str) -> str:
    if not is_cache_name(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a valid name. Use lower-case letters, digits, dots, hyphens and underscores, at most 64, "
            "a letter or digit first"
        )
    return text


def _parse_glob(text: str) -> str:
    try:
        Glob.parse(text)
    except GlobError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid glob: {error}") from error
    return text


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
