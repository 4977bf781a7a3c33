"""`kaiza context remove`: remove a cache."""

import argparse

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import open_workspace
from kaiza.cli.context.cache_name import add_cache_name, missing_cache
from kaiza.queries.workspaces import find_person_name
from kaiza.store import human_decisions
from kaiza.store.context.cache_removal import has_cache, remove_cache
from kaiza.store.context.source_scan import CacheBuildError

ACTION = "context_remove"


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("remove", help="remove a cache")
    arguments.describe(
        parser,
        "Remove a cache. Its sources are left alone. A directory that holds anything but a cache is left alone too. "
        "Recorded; no confirmation is needed, because a cache can be built again.\n"
        "Exit status: 0 removed, 1 there is no such cache, or the directory holds something else.",
        "kaiza context remove docs",
        run=_run_remove,
    )
    add_cache_name(parser)
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_remove(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        kaiza_dir = workspace.blobs.kaiza_dir
        try:
            if not has_cache(kaiza_dir, args.cache):
                raise missing_cache(args.cache)
            human_decisions.record_decision(
                workspace, ACTION, find_person_name(args.name), detail={"cache": args.cache}
            )
            remove_cache(kaiza_dir, args.cache)
        except CacheBuildError as error:
            raise output.CommandError(str(error), output.FAILURE) from error
    if args.json:
        output.print_json({"cache": args.cache, "removed": True})
    else:
        output.print_sentences([f"Removed {args.cache}."])
    return output.SUCCESS
