"""`kaiza context build`: pack the documents of directories into a cache."""

import argparse
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import open_workspace
from kaiza.cli.context.cache_name import add_cache_name
from kaiza.cli.context.sources import DEFAULT_GLOB, SourceSet, label_source, pack_documents, resolve_sources
from kaiza.clock import current_timestamp
from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.glob_parser import GlobError
from kaiza.policy.content.secrets import find_secrets
from kaiza.queries.workspaces import find_person_name
from kaiza.render.terminal import escape, format_count, wrap
from kaiza.store import human_decisions
from kaiza.store.context.cache_builder import CacheBuilder
from kaiza.store.context.cache_removal import has_cache
from kaiza.store.context.source_scan import CacheBuildError, LeftOut, SourceDocument
from kaiza.store.workspace import Workspace

ACTION = "context_build"
_MAX_SHOWN = 20


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
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
    add_cache_name(parser)
    parser.add_argument("--source", metavar="DIR", action="append", required=True, help="a directory of documents")
    parser.add_argument(
        "--glob",
        metavar="GLOB",
        type=_parse_glob,
        default=DEFAULT_GLOB,
        help=f"which files of a source to pack (default: {DEFAULT_GLOB})",
    )
    parser.add_argument("--outside", action="store_true", help="allow sources outside the workspace")
    parser.add_argument("--force", action="store_true", help="replace the cache of this name")
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _parse_glob(text: str) -> str:
    try:
        Glob.parse(text)
    except GlobError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid glob: {error}") from error
    return text


def _run_build(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        directories = resolve_sources(workspace.root, args.source, is_outside_allowed=args.outside)
        try:
            built, left_out = _build(args, workspace, SourceSet(directories, args.glob))
        except CacheBuildError as error:
            raise output.CommandError(f"{escape(str(error))} Nothing was built.", output.FAILURE) from error
    if args.json:
        rows = [{"path": escape(each.path), "why": each.why} for each in left_out]
        output.print_json({**built, "left_out": rows})
    else:
        output.print_lines(_describe_left_out(left_out))
        output.print_sentences([f"Built {args.cache}: {format_count(built['document_count'], 'document')}."])
        output.print_lines(wrap([built["cache_version"]], output.terminal_width()))
    return output.SUCCESS


def _build(args: argparse.Namespace, workspace: Workspace, sources: SourceSet) -> tuple[dict[str, Any], list[LeftOut]]:
    kaiza_dir = workspace.blobs.kaiza_dir
    if has_cache(kaiza_dir, args.cache) and not args.force:
        raise CacheBuildError(f"There is a cache {args.cache} already. To replace it, add --force.")
    # Before the builder makes `.kaiza/`: a workspace that has `.kaiza/` without an id counts as from elsewhere.
    workspace.begin_recording()
    with closing(CacheBuilder(kaiza_dir)) as builder:
        with output.Progress("packing") as progress:
            left_out = pack_documents(sources.scan(workspace), partial(_pack, builder, progress))
        cache_version = builder.seal(current_timestamp())
        built = {"cache": args.cache, "cache_version": cache_version, "document_count": builder.count}
        labels = [label_source(workspace.root, each) for each in sources.directories]
        # Recorded first: no agent reads a cache that the log does not know.
        human_decisions.record_decision(
            workspace, ACTION, find_person_name(args.name), detail={**built, "sources": labels, "glob": sources.glob}
        )
        builder.publish(args.cache, replace=args.force)
    return built, left_out


def _pack(builder: CacheBuilder, progress: output.Progress, document: SourceDocument) -> None:
    secret = next(find_secrets(document.content), None)
    if secret is not None:
        where = f"{document.path}:{secret.line + 1}:{secret.column + 1}"
        raise CacheBuildError(f"{where} looks like a secret ({secret.rule}). Remove it, or leave the file out.")
    builder.add(document)
    progress(builder.count, 0)


def _describe_left_out(left_out: list[LeftOut]) -> Iterator[str]:
    lines = (f"Left out: {escape(each.path)} ({each.why})" for each in left_out[:_MAX_SHOWN])
    yield from wrap(lines, output.terminal_width())
    if len(left_out) > _MAX_SHOWN:
        yield f"Left out: {len(left_out) - _MAX_SHOWN} more; --json lists all."
