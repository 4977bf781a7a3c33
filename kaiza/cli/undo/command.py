"""`kaiza undo`: put back what a session, a call or a plan changed; shown first, and nothing that would be lost."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.boundary import human_undo
from kaiza.cli.console import arguments, open_workspace, output
from kaiza.cli.console.confirm import confirm_yes_no
from kaiza.cli.undo import selection
from kaiza.domain import errors
from kaiza.domain.caps import Caps
from kaiza.domain.change import Change
from kaiza.domain.text import unified_diff
from kaiza.policy.rules.readable import read_refusal
from kaiza.render import plans
from kaiza.render.terminal import escape
from kaiza.store import human_decisions
from kaiza.store.crash_recovery import recover
from kaiza.store.tool_view import ToolView
from kaiza.store.workspace import Workspace
from kaiza.tools.changing.undo_plan import undo_changes_for

MAX_SHOWN_BYTES = 1 << 20
"""A file above this is told by its size."""
MAX_DIFF_LINES = 2000
"""So many lines of diffs are shown in all."""
_NO_TERMINAL = "There is no terminal to ask at. Say --yes to go on without asking, or --dry-run to look only."
_REASONS = {
    "changed_since": "it was changed since, by somebody else",
    "not_kept": "what was there before is not kept any more",
    "protected": "it governs the agent, or may hold secrets",
    "moved_together": "it was moved, and its other side has to stay",
}


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    arguments.describe(
        parser,
        "Put back, byte for byte and mode for mode, what recorded changes replaced, newest first; only where a file\n"
        "still is what the change left, and nothing else is touched. Shows the diffs and asks. Works under a freeze\n"
        "and needs no plan. The undo is recorded, and can itself be undone with --request.\n"
        "Exit status: 0 put back, 1 something was kept as it is or nothing was wanted, 3 nobody to ask (--yes).",
        "kaiza undo --session 3f2b --dry-run\nkaiza undo --plan PLAN-0007-rotate-tokens",
        run=_run_undo,
    )
    selection.add_arguments(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--dry-run", action="store_true", help="only show what would be put back")
    how.add_argument("--yes", action="store_true", help="do not ask")
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


@dataclass(frozen=True, slots=True)
class UndoPreview:
    """What leads back, and what stays."""

    records: Sequence[Mapping[str, Any]]
    changes: list[Change]
    skipped: list[dict[str, str]]


def _run_undo(args: argparse.Namespace) -> int:
    name = arguments.resolve_name(args.name)
    with open_workspace.open_workspace(args) as ground:
        open_workspace.verify_whole_log(ground)
        view = _open_view(ground)
        if not args.dry_run:
            recover(ground, view.now, view.request_id)
        records = selection.select_records(args, ground)
        way = UndoPreview(records, *undo_changes_for(records, view))
        diffs = list(_format_diffs(way.changes, ground, view))
        if not args.json:
            output.print_lines(_format_preview(way, diffs))
        made: list[str] = []
        if way.changes and not args.dry_run:
            _confirm_undo(args, way)
            made = [_undo_batch(ground, part, name) for part in human_undo.split_batches(way.changes, records)]
    if args.json:
        output.print_json(_json_document(way, made, diffs, dry_run=args.dry_run))
    elif made:
        output.print_lines([f"Put back. To undo that: kaiza undo --request {' '.join(made)}"])
    return output.FAILURE if way.skipped else output.SUCCESS


def _open_view(ground: Workspace) -> ToolView:
    """The workspace as it is looked at for a person."""
    return ToolView(
        ground, None, Caps(), {}, read_refusal, lambda: False, human_decisions.current_timestamp(), "kaiza undo"
    )


def _confirm_undo(args: argparse.Namespace, way: UndoPreview) -> None:
    count = len(way.changes)
    if not args.yes and not confirm_yes_no(f"Put back {count} file{'' if count == 1 else 's'} as shown?", _NO_TERMINAL):
        raise output.CommandError("Nothing was put back, and nothing has changed.", output.FAILURE)


def _undo_batch(ground: Workspace, part: human_undo.UndoBatch, name: str) -> str:
    """One part put back; the name by which that can be undone."""
    try:
        return str(human_undo.execute_batch(ground, part, name)["request_id"])
    except errors.SystemError as error:
        first = escape(str(part.changes[0].path))
        raise output.CommandError(
            f"{error.error_code}: {error.human_message} Nothing of the part that begins with {first} was put back; "
            "what was before it is. Run kaiza undo again to see.",
            output.FAILURE,
        ) from error


def _format_diffs(changes: Sequence[Change], ground: Workspace, view: ToolView) -> Iterator[str]:
    """One text for each change, until they are too many to read."""
    left = MAX_DIFF_LINES
    for change in changes:
        if left <= 0:
            yield ""
            continue
        text = _format_diff(change, ground, view)
        lines = text.splitlines(keepends=True)
        cut = ["… the rest is not shown\n"] if len(lines) > left else []
        yield "".join([*lines[:left], *cut])
        left -= len(lines)


def _format_diff(change: Change, ground: Workspace, view: ToolView) -> str:
    before = _current_content(change, view)
    after = before if change.operation == "move" else _restored_content(change, ground)
    mode = view.stat(change.source or change.path).mode if change.before_hash is not None else 0o644
    old = unified_diff.FileVersion(change.source or change.path, before, mode)
    new = unified_diff.FileVersion(change.path, after, mode if change.mode is None else change.mode)
    if (before is None) != (change.before_hash is None) or (after is None) != (change.operation == "delete"):
        return f"{change.operation} {change.path}: too large to show\n"
    made = unified_diff.compare(old, new)
    return made.text + ("… the rest is not shown\n" if made.truncated else "")


def _current_content(change: Change, view: ToolView) -> bytes | None:
    """What is there; None where nothing is, or too much to show."""
    if change.before_hash is None:
        return None
    with view.open_file(change.source or change.path) as file:
        return b"".join(file.chunks()) if file.size <= MAX_SHOWN_BYTES else None


def _restored_content(change: Change, ground: Workspace) -> bytes | None:
    """What will be there; None where nothing will be, or too much to show."""
    if change.after_hash is None or change.size > MAX_SHOWN_BYTES:
        return None
    return b"".join(ground.blobs.chunks(change.after_hash))


def _format_preview(way: UndoPreview, diffs: Sequence[str]) -> Iterator[str]:
    width, colour = output.terminal_width(), output.has_colour()
    for text in filter(None, diffs):
        yield from plans.render_diff(text, width, colour=colour)
    told = [f"{change.operation.ljust(7)}{_format_path(change)}" for change in way.changes]
    yield from plans.render_section("To be put back", told, width, colour=colour)
    kept = [f"{escape(one['path'])}: {_REASONS.get(one['reason'], one['reason'])}" for one in way.skipped]
    yield from plans.render_section("Kept as it is", kept, width, colour=colour, style="yellow")
    if not told and not kept:
        yield "Nothing to put back: everything is as it was before these changes."


def _format_path(change: Change) -> str:
    source = f"{escape(str(change.source))} to " if change.source else ""
    return f"{source}{escape(str(change.path))}"


def _json_document(way: UndoPreview, made: list[str], diffs: Sequence[str], *, dry_run: bool) -> dict[str, Any]:
    """The changes as records list them, each with its diff as far as it is shown."""
    told = [{**change.as_record(), "diff": text} for change, text in zip(way.changes, diffs, strict=True)]
    return {"changes": told, "kept": way.skipped, "dry_run": dry_run, "request_ids": made}
