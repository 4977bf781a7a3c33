"""`kaiza undo`: restore the files that a session, a call or a plan changed, unless they were modified since."""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.boundary import human_undo
from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import confirm_by_typing
from kaiza.cli.console.interrupted import name_interrupted
from kaiza.cli.console.open_workspace import open_workspace, verify_whole_log
from kaiza.cli.undo import listing, selection
from kaiza.clock import current_timestamp
from kaiza.domain import errors
from kaiza.domain.audit.inverse_changes import invert
from kaiza.domain.caps import Caps
from kaiza.domain.change import Change
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.text import unified_diff
from kaiza.policy.rules.readable import read_refusal
from kaiza.queries.workspaces import find_person_name
from kaiza.render import plans
from kaiza.render.terminal import escape_name, format_count
from kaiza.store.audit.record_search import member_text, search_backward
from kaiza.store.crash_recovery import recover
from kaiza.store.tool_view import ToolView
from kaiza.store.workspace import Workspace
from kaiza.tools.changing.undo_plan import undo_changes_for

MAX_SHOWN_BYTES = 1 << 20
"""Diffs of larger files are not shown."""
MAX_DIFF_LINES = 2000
"""Diff lines shown in all."""
MAX_DIFF_BYTES = 1 << 20
"""Bytes of the diffs shown in all."""
_NO_TERMINAL = (
    "There is no terminal to ask at. Use --yes to restore without asking, or --dry-run to only show the changes."
)
_USAGE = """\
%(prog)s
       %(prog)s --last [options]
       %(prog)s --session ID [options]
       %(prog)s --request ID [ID ...] [options]
       %(prog)s --plan ID [options]"""
_CLEARED = "its earlier content is no longer stored; `kaiza gc` has cleared what was old"
_CHANGED_BETWEEN = "older changes of it are left, because it was modified in between"
_REASONS = {
    "changed_since": "modified since",
    "directory_in_place": "a directory is in its place, or a file where its directory was",
    "not_kept": "its earlier content is missing or damaged in .kaiza/objects",
    "protected": "a protected file: it governs agents or may hold secrets",
    "moved_together": "it was moved, and the other side of the move cannot be restored",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "Restore the content and mode of files an agent changed, newest change first. Files modified since are left "
        "alone, and named with the reason. Works on a full disk. Shows the diffs and asks. Works under a freeze and "
        "needs no plan. The undo is recorded, and can itself "
        "be undone with --request. Without a choice, lists what can be undone and the command for each.\n"
        "Exit status: 0 restored or listed, 1 some files were left alone or you declined, 3 no terminal to ask at: "
        "use --yes.",
        "kaiza undo\nkaiza undo --last\nkaiza undo --session 3f2b --dry-run\nkaiza undo --plan PLAN-0007-rotate-tokens",
        run=_run_undo,
    )
    parser.usage = _USAGE
    selection.add_arguments(parser)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--dry-run", action="store_true", help="only show what would be restored")
    mode.add_argument("--yes", action="store_true", help="do not ask")
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


@dataclass(frozen=True, slots=True)
class UndoPreview:
    """The changes that restore files, and the files that are left alone."""

    changes: list[Change]
    skipped: list[dict[str, str]]


def _run_undo(args: argparse.Namespace) -> int:
    if selection.is_listing(args):
        return _list_changes(args)
    name = find_person_name(args.name)
    with open_workspace(args) as workspace:
        # What is restored is read from the log, so the log must be sound as a whole.
        verify_whole_log(workspace)
        if args.dry_run:
            return _undo_changes(args, workspace, name)
        with human_undo.use_reserve(workspace):
            # A change that a crash left half done is finished or rolled back first: undo compares files with the log.
            _print_recovered(recover(workspace, current_timestamp(), "kaiza undo") or ())
            return _undo_changes(args, workspace, name)


def _undo_changes(args: argparse.Namespace, workspace: Workspace, name: str) -> int:
    view = _open_view(workspace)
    is_selected, undone_calls = selection.select_records(args, workspace), human_undo.UndoneCalls()
    inverses = invert(undone_calls.note(selection.read_changes(workspace), is_selected), is_selected)
    preview = UndoPreview(*undo_changes_for(inverses, view, made_directories=human_undo.made_directories(workspace)))
    diffs = list(_format_diffs(preview.changes, workspace, view))
    if not args.json:
        last = next(filter(is_selected, selection.read_changes(workspace)), None) if args.last else None
        if last is not None:
            output.print_sentences([f"The last change: {listing.describe_change(last)}", ""])
        output.print_lines(_format_preview(preview, diffs, workspace))
    request_ids: list[str] = []
    if preview.changes and not args.dry_run:
        _confirm_undo(args, preview)
        holders = human_undo.find_holders(preview.changes)
        batches = human_undo.split_batches(preview.changes, undone_calls, workspace.free_bytes)
        request_ids = [_undo_batch(workspace, batch, name, holders) for batch in batches]
    if args.json:
        output.print_json(_json_document(preview, request_ids, diffs, undone_calls.all_ids, dry_run=args.dry_run))
    elif request_ids:
        output.print_lines(_result_lines(preview, request_ids))
    return output.FAILURE if preview.skipped else output.SUCCESS


def _print_recovered(reports: Iterable[Mapping[str, Any]]) -> None:
    for each in reports:
        what = "left as it is" if each["result"] == "left" else each["result"].replace("_", " ")
        more = f" and {len(each['paths']) - 1} more" if len(each["paths"]) > 1 else ""
        where = f" ({escape_name(each['paths'][0])}{more})" if each["paths"] else ""
        output.print_error(f"A change that a crash interrupted{where}: {what}.")


def _list_changes(args: argparse.Namespace) -> int:
    if args.yes:
        raise output.CommandError(
            "--yes restores without asking. Choose what: --last, --session, --request or --plan.", output.USAGE_ERROR
        )
    with open_workspace(args) as workspace:
        verify_whole_log(workspace)
        name_interrupted(workspace)
        effective = list(selection.iter_all_effective(workspace))
    if args.json:
        output.print_json(listing.summarize(effective))
    else:
        output.print_lines(listing.render_listing(effective, output.terminal_width()))
    return output.SUCCESS


def _open_view(workspace: Workspace) -> ToolView:
    return ToolView(workspace, None, Caps(), {}, read_refusal, lambda: False, current_timestamp(), "kaiza undo")


def _confirm_undo(args: argparse.Namespace, preview: UndoPreview) -> None:
    facts = f"{format_count(len(preview.changes), 'file')} to be restored as shown."
    if not args.yes and not confirm_by_typing(facts, "undo", _NO_TERMINAL):
        raise output.CommandError("Cancelled. Nothing was restored.", output.FAILURE)


def _undo_batch(
    workspace: Workspace, batch: human_undo.UndoBatch, name: str, holders: Mapping[str, Sequence[RelPath]]
) -> str:
    """Restore one batch; the request id that undoes it."""
    try:
        return str(human_undo.execute_batch(workspace, batch, name, holders)["request_id"])
    except errors.SystemError as error:
        first = escape_name(str(batch.changes[0].path))
        raise output.CommandError(
            f"{error.error_code}: {error.human_message} The batch that begins with {first} was not restored; the "
            "batches before it were. Run `kaiza undo` again to see what is left.",
            output.FAILURE,
        ) from error


def _result_lines(preview: UndoPreview, request_ids: Sequence[str]) -> Iterator[str]:
    """The command that undoes the undo; with several ids as lines of shell, so that none is too wide."""
    left = f", left {format_count(len(preview.skipped), 'file')} alone" if preview.skipped else ""
    yield f"Restored {format_count(len(preview.changes), 'file')}{left}. To undo this:"
    if len(request_ids) == 1:
        yield f"  kaiza undo --request {request_ids[0]}"
    else:
        yield " \\\n    ".join(["  kaiza undo --request", *request_ids])


def _format_diffs(changes: Sequence[Change], workspace: Workspace, view: ToolView) -> Iterator[str]:
    """One diff for each change, up to MAX_DIFF_LINES lines and MAX_DIFF_BYTES in all; then empty ones."""
    room, space = MAX_DIFF_LINES, MAX_DIFF_BYTES
    holders = {change.before_hash: change for change in changes if change.before_hash is not None}
    for change in changes:
        if room <= 0 or space <= 0:
            yield ""
            continue
        text = _format_diff(change, workspace, view, holders)
        lines = text.splitlines(keepends=True)
        cut = ["… the rest is not shown\n"] if len(lines) > room else []
        yield "".join([*lines[:room], *cut])
        room, space = room - len(lines), space - len(text)


def _format_diff(change: Change, workspace: Workspace, view: ToolView, holders: Mapping[str, Change]) -> str:
    before = _current_content(change, view)
    after = before if change.operation == "move" else _restored_content(change, workspace, view, holders)
    mode = view.stat(change.source or change.path).mode if change.before_hash is not None else 0o644
    old = unified_diff.FileVersion(change.source or change.path, before, mode)
    new = unified_diff.FileVersion(change.path, after, mode if change.mode is None else change.mode)
    if (before is None) != (change.before_hash is None) or (after is None) != (change.operation == "delete"):
        return f"{change.operation} {change.path}: too large to show\n"
    diff = unified_diff.compare(old, new)
    return diff.text + ("… the rest is not shown\n" if diff.truncated else "")


def _current_content(change: Change, view: ToolView) -> bytes | None:
    """The file's content now; None if there is no file or it is too large to show."""
    if change.before_hash is None:
        return None
    with view.open_file(change.source or change.path) as file:
        return b"".join(file.chunks()) if file.size <= MAX_SHOWN_BYTES else None


def _restored_content(
    change: Change, workspace: Workspace, view: ToolView, holders: Mapping[str, Change]
) -> bytes | None:
    """The file's content afterwards; None if there will be no file or it is too large to show."""
    if change.after_hash is None or change.size > MAX_SHOWN_BYTES:
        return None
    if change.after_hash in holders:
        return _current_content(holders[change.after_hash], view)
    return b"".join(workspace.blobs.chunks(change.after_hash))


def _format_preview(preview: UndoPreview, diffs: Sequence[str], workspace: Workspace) -> Iterator[str]:
    width, colour = output.terminal_width(), output.has_colour()
    for text in filter(None, diffs):
        yield from plans.render_diff(text, width, colour=colour)
    restored = [f"{change.operation.ljust(7)}{_format_path(change)}" for change in preview.changes]
    yield from plans.render_section("To be restored", restored, width, colour=colour)
    skipped = [f"{escape_name(one['path'])}: {_explain(one, preview, workspace)}" for one in preview.skipped]
    yield from plans.render_section("Left alone", skipped, width, colour=colour, style="yellow")
    if not restored and not skipped:
        yield "Nothing to restore: none of these changes is in effect any more."


def _explain(skip: Mapping[str, str], preview: UndoPreview, workspace: Workspace) -> str:
    """Why a file is left alone, or some of its changes."""
    reason = skip["reason"]
    if any(str(change.path) == skip["path"] for change in preview.changes):
        return _CHANGED_BETWEEN
    if reason == "not_kept" and _was_cleaned(workspace):
        return _CLEARED
    return _REASONS.get(reason, reason)


def _was_cleaned(workspace: Workspace) -> bool:
    """Whether a person has run `kaiza gc` here."""
    found = search_backward(workspace.root, member_text("action", "gc"))
    return any(record.get("kind") == "person" for record in found)


def _format_path(change: Change) -> str:
    source = f"{escape_name(str(change.source))} to " if change.source else ""
    return f"{source}{escape_name(str(change.path))}"


def _json_document(
    preview: UndoPreview, request_ids: list[str], diffs: Sequence[str], undone: Sequence[str], *, dry_run: bool
) -> dict[str, Any]:
    """The changes as records list them, each with its diff as far as it is shown."""
    changes = [{**change.as_record(), "diff": text} for change, text in zip(preview.changes, diffs, strict=True)]
    document = {"changes": changes, "kept": preview.skipped, "dry_run": dry_run, "request_ids": request_ids}
    return {**document, "undone": list(undone)}
