"""`kaiza diff`: what an agent changed, as git shows a diff; git can apply it."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kaiza.cli.console import arguments, output
from kaiza.cli.console.interrupted import name_interrupted
from kaiza.cli.console.open_workspace import open_workspace
from kaiza.cli.console.pager import page_lines
from kaiza.cli.review import selection
from kaiza.domain.refusal import RefusedError
from kaiza.domain.review.report import ReviewSelection
from kaiza.domain.text.unified_diff import quote_name
from kaiza.queries.agent_diff import AgentDiff, diff_files
from kaiza.queries.review_records import TooManyRecordsError
from kaiza.queries.review_report import gather_evidence
from kaiza.render import plans
from kaiza.render.diff_stat import StatRow, render_stat
from kaiza.render.terminal import escape

_USAGE = """\
%(prog)s [--last] [options] [PATH ...]
       %(prog)s --session ID [options] [PATH ...]
       %(prog)s --plan ID [options] [PATH ...]
       %(prog)s --request ID [options] [PATH ...]"""
_HOW_TO_READ = "--color=always shows them spelled out."
MAX_CONTENT_BYTES = 32 << 20
"""Larger contents are not compared."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "Show what an agent changed, as git shows a diff: from before its first call to after its last one, without "
        "what others changed later. Undone changes are left out. On a terminal, in colour, through $PAGER, and with "
        "control characters spelled out; otherwise for `git apply`, with control characters only in binary patches. "
        "--color=always prints to a pipe what a terminal gets.\n"
        "Exit status: 0 shown, 1 no such session, plan or call, or a content that is not kept any more.",
        "kaiza diff\nkaiza diff --session 3f2b --stat\nkaiza diff --plan PLAN-0007-rotate-tokens src/",
        run=_run_diff,
    )
    parser.usage = _USAGE
    selection.add_arguments(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--stat", action="store_true", help="only the number of changed lines of each file")
    form.add_argument("--name-only", action="store_true", help="only the names of the files")
    form.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--color",
        metavar="WHEN",
        choices=["auto", "always", "never"],
        default="auto",
        help="auto, always or never",
    )
    parser.add_argument("--no-pager", action="store_true", help="do not use a pager")
    parser.add_argument("paths", metavar="PATH", nargs="*", help="only this file, or files below this directory")
    arguments.add_workspace(parser)


def _run_diff(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        name_interrupted(workspace)
        chosen = selection.resolve_selection(args, workspace.root)
        try:
            evidence, contents = gather_evidence(workspace, chosen, MAX_CONTENT_BYTES)
        except TooManyRecordsError:
            raise RefusedError(selection.TOO_MANY) from None
        selection.require_records(chosen, len(evidence.selected))
        diffs = diff_files(evidence, contents, _path_filter(args.paths, workspace.root))
        damage = workspace.damage()
    if damage is not None:
        output.print_error(
            f"The audit log is damaged ({damage}); this may not be what happened. See kaiza audit verify."
        )
    _print_diffs(args, chosen, diffs, workspace.root)
    return output.SUCCESS if _print_notes(diffs) else output.FAILURE


def _print_diffs(args: argparse.Namespace, chosen: ReviewSelection, diffs: Sequence[AgentDiff], root: str) -> None:
    is_wanted = args.color == "always"
    colour = is_wanted or (args.color == "auto" and output.has_colour())
    if args.json:
        output.print_json(_json_document(chosen, diffs))
    elif not diffs:
        output.print_error("No changes are left of these calls.")
    elif args.name_only:
        # As git prints them: quoted if they have unusual characters.
        output.print_lines(quote_name(diff.path.encode(errors="surrogateescape")).decode() for diff in diffs)
    elif args.stat:
        rows = [
            StatRow(
                diff.path,
                diff.source,
                None if diff.is_binary or diff.data is None else (diff.lines_added, diff.lines_removed),
            )
            for diff in diffs
        ]
        stat = render_stat(rows, output.terminal_width(), colour=colour)
        page_lines(stat, root, wanted=not args.no_pager)
    elif is_wanted or sys.stdout.isatty():
        page_lines(_screen_lines(diffs, colour=colour), root, wanted=not args.no_pager)
    else:
        for diff in diffs:
            sys.stdout.buffer.write(diff.patch or b"")
            if diff.patch != diff.data:
                output.print_error(f"{escape(diff.path)}: a binary patch, for its control characters. {_HOW_TO_READ}")


def _screen_lines(diffs: Sequence[AgentDiff], *, colour: bool) -> Iterator[str]:
    """The diffs with control characters spelled out: a file must not control the terminal that shows it."""
    for diff in diffs:
        if diff.data:
            text = diff.data.decode(errors="backslashreplace").replace("\t", "        ")
            yield from plans.render_diff(text, None, colour=colour)


def _print_notes(diffs: Sequence[AgentDiff]) -> bool:
    """Say what cannot be shown, and what is not the agent's alone; whether everything was shown."""
    for diff in diffs:
        if diff.note is not None:
            output.print_error(f"{escape(diff.path)} is not shown: {diff.note}.")
        elif diff.has_outside:
            output.print_error(f"{escape(diff.path)}: others changed it between these calls, which is in the diff too.")
    return all(diff.note is None for diff in diffs)


def _path_filter(paths: Sequence[str], root: str) -> Callable[[str], bool]:
    """Whether a path of the workspace is wanted. As for git, the arguments are relative to the current directory."""
    here = os.path.relpath(os.path.realpath("."), root)
    base = "" if here.startswith("..") else here
    wanted = [_path_parts(os.path.normpath(f"{base}/{path}")) for path in paths]
    return lambda path: not wanted or any(_path_parts(path)[: len(parts)] == parts for parts in wanted)


def _path_parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _json_document(chosen: ReviewSelection, diffs: Sequence[AgentDiff]) -> dict[str, Any]:
    return {
        "selection": {"kind": chosen.kind, "id": chosen.id},
        "files": [
            {
                "path": diff.path,
                "source": diff.source,
                "operation": diff.operation,
                "lines_added": diff.lines_added,
                "lines_removed": diff.lines_removed,
                "binary": diff.is_binary,
                "has_other_changes": diff.has_outside,
                "not_shown": diff.note,
                "diff": None if diff.data is None else diff.data.decode(errors="backslashreplace"),
            }
            for diff in diffs
        ],
    }
