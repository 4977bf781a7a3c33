"""`kaiza context list` and `inspect`: list the caches of a workspace; verify one, and compare it with its sources."""

import argparse
import os
from collections.abc import Mapping
from typing import Any

from kaiza.cli.console import arguments, audit_reader, output
from kaiza.cli.console.open_workspace import open_workspace, resolve_root
from kaiza.cli.context import build
from kaiza.cli.context.cache_name import add_cache_name, to_command_error
from kaiza.cli.context.resolve import CommandView
from kaiza.cli.context.sources import SourceSet
from kaiza.domain import errors
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.workspace import Workspace
from kaiza.tools.context import context_inspect_cache, context_list_caches


def add(commands: arguments.Subparsers) -> None:
    """Add the two subcommands."""
    list_parser = commands.add_parser("list", help="list the caches")
    arguments.describe(list_parser, "List the context caches of the workspace.", "kaiza context list", run=_run_list)
    inspect_parser = commands.add_parser("inspect", help="verify a cache, and compare it with its sources")
    arguments.describe(
        inspect_parser,
        "Verify a cache, and say whether its sources have changed since it was built here.\n"
        "Exit status: 0 sound, 1 invalid or no such cache, 3 the cache could not be read.",
        "kaiza context inspect docs",
        run=_run_inspect,
    )
    add_cache_name(inspect_parser)
    for parser in (list_parser, inspect_parser):
        arguments.add_workspace(parser)
        arguments.add_json(parser)


def _run_list(args: argparse.Namespace) -> int:
    with ConfinedRoot(resolve_root(args)) as root:
        listed = context_list_caches.run(context_list_caches.Request(), CommandView(root.fd)).output
    if args.json:
        output.print_json(listed)
    elif listed["caches"]:
        for cache in listed["caches"]:
            output.print_lines([cache["path"] if cache["has_manifest"] else f"{cache['path']}  (no manifest)"])
    else:
        output.print_error("There are no context caches. `kaiza context build` builds one.")
    return output.SUCCESS


def _run_inspect(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        try:
            request = context_inspect_cache.Request(args.cache)
            inspected = context_inspect_cache.run(request, CommandView(workspace.files.fd)).output
        except errors.SystemError as error:
            raise to_command_error(error, args.cache) from error
        built = _find_build(workspace, args.cache, inspected["cache_version"]) if inspected["valid"] else None
        changed = (
            None if built is None else _read_sources(workspace, built).is_changed(workspace, built["cache_version"])
        )
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


def _find_build(workspace: Workspace, name: str, cache_version: str) -> Mapping[str, Any] | None:
    """The record's detail of the build of this cache; None if it was not built here, or its record is malformed."""
    for record in audit_reader.read_backward(workspace.root):
        if workspace.binding.is_foreign or record["seq"] <= workspace.binding.adopted_seq:
            return None
        if record["kind"] == "person" and isinstance(detail := record["detail"], dict):
            wanted = {"action": build.ACTION, "cache": name, "cache_version": cache_version}
            if wanted.items() <= detail.items():
                return detail
    return None


def _read_sources(workspace: Workspace, built: Mapping[str, Any]) -> SourceSet:
    return SourceSet([os.path.join(workspace.root, each) for each in built["sources"]], built["glob"])  # noqa: PTH118  any bytes
