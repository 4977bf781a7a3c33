"""`kaiza undo`: restore the files that a session, a call or a plan changed, unless they were modified since."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from itertools import islice
from typing import Any

from kaiza.cli.console import arguments, audit_reader, output
from kaiza.cli.console.confirm import confirm
from kaiza.cli.console.id_prefix import resolve_id
from kaiza.cli.console.interrupted import name_interrupted
from kaiza.cli.console.open_workspace import PLAN_ADVICE, open_workspace, parse_plan_prefix, verify_whole_log
from kaiza.cli.undo import listing
from kaiza.decisions import undo
from kaiza.domain.audit.record import Record
from kaiza.domain.refusal import RefusedError
from kaiza.queries.undoable_changes import has_been_cleaned, iter_all_effective, read_changes
from kaiza.queries.workspaces import Workspace, find_person_name
from kaiza.render import plans
from kaiza.render.terminal import escape_name, format_count

_NO_TERMINAL = (
    "There is no terminal to ask at. Use --yes to restore without asking, or --dry-run to only show the changes."
)
_CALL_ADVICE = "`kaiza undo` lists what can be undone."
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
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--last", action="store_true", help="the last change that is still in effect")
    target.add_argument("--session", metavar="ID", help="every change of this session; its first characters are enough")
    target.add_argument(
        "--request",
        metavar="ID",
        nargs="+",
        help="the changes of these calls, or of these undos; the first characters of each id are enough",
    )
    target.add_argument(
        "--plan",
        metavar="ID",
        type=parse_plan_prefix,
        help="every change made under this plan; its first characters are enough",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--dry-run", action="store_true", help="only show what would be restored")
    mode.add_argument("--yes", action="store_true", help="do not ask")
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_undo(args: argparse.Namespace) -> int:
    if not args.last and args.session is None and args.request is None and args.plan is None:
        return _list_changes(args)
    name = find_person_name(args.name)
    with open_workspace(args) as workspace:
        verify_whole_log(workspace)
        with nullcontext(()) if args.dry_run else undo.prepare(workspace) as recovered:
            _print_recovered(recovered)
            return _undo_changes(args, workspace, name)


def _undo_changes(args: argparse.Namespace, workspace: Workspace, name: str) -> int:
    is_selected = select_records(args, workspace)
    proposal = undo.propose(workspace, is_selected)
    if not args.json:
        last = next(filter(is_selected, read_changes(workspace)), None) if args.last else None
        if last is not None:
            output.print_sentences([f"The last change: {listing.describe_change(last)}", ""])
        output.print_lines(_format_proposal(proposal, workspace))
    count, left_alone = format_count(len(proposal.changes), "file"), format_count(len(proposal.skipped), "file")
    request_ids: list[str] = []
    if proposal.changes and not args.dry_run:
        if not args.yes and not confirm("", f"Restore {count} as shown?", missing=_NO_TERMINAL):
            raise RefusedError("Cancelled. Nothing was restored.")
        request_ids = [*undo.decide(workspace, proposal, name).request_ids]
    if args.json:
        # The changes as records list them, each with its diff as far as it is shown.
        changes = [
            {**change.as_record(), "diff": text} for change, text in zip(proposal.changes, proposal.diffs, strict=True)
        ]
        undone = list(proposal.undone_calls.all_ids)
        document = {"changes": changes, "kept": proposal.skipped, "dry_run": args.dry_run}
        output.print_json({**document, "request_ids": request_ids, "undone": undone})
    elif request_ids:
        left = f", left {left_alone} alone" if proposal.skipped else ""
        # Several ids are lines of shell, so that none is too wide.
        command = ["  kaiza undo --request", *request_ids]
        lines = " \\\n    ".join(command) if len(request_ids) > 1 else " ".join(command)
        output.print_lines([f"Restored {count}{left}. To undo this:", lines])
    return output.FAILURE if proposal.skipped else output.SUCCESS


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
        effective = list(iter_all_effective(workspace))
    if args.json:
        output.print_json(listing.summarize(effective))
    else:
        output.print_lines(listing.render_listing(effective, output.terminal_width()))
    return output.SUCCESS


def select_records(args: argparse.Namespace, workspace: Workspace) -> Callable[[Record], bool]:
    """Tells whether a record is of the selected changes. An agent's undos count as changes."""
    if args.last:
        newest = {record.seq for record in islice(iter_all_effective(workspace), 1)}
        return lambda record: record.seq in newest
    if args.request is not None:
        known = {record.request_id for record in read_changes(workspace) if record.request_id}
        member = "request_id"
        wanted = {resolve_id(known, prefix, "change", _CALL_ADVICE) for prefix in args.request}
    elif args.session is not None:
        named = (record.session_id for record in audit_reader.read_forward(workspace.root))
        session_ids = {session_id for session_id in named if isinstance(session_id, str) and session_id}
        member, wanted = "session_id", {audit_reader.resolve_session(session_ids, args.session)}
    else:
        # Plans with a file or a change; the text itself if none begins so.
        changed = {record.plan_id for record in iter_all_effective(workspace) if record.plan_id}
        plan_ids = [one for one in {*workspace.plans.plan_ids(), *changed} if one.startswith(args.plan)]
        member = "plan_id"
        wanted = {resolve_id(plan_ids, args.plan, "plan", PLAN_ADVICE) if plan_ids else args.plan}
    return lambda record: record.members[member] in wanted


def _format_proposal(proposal: undo.Proposal, workspace: Workspace) -> Iterator[str]:
    width, colour = output.terminal_width(), output.has_colour()
    for text in filter(None, proposal.diffs):
        yield from plans.render_diff(text, width, colour=colour)
    restored = []
    for change in proposal.changes:
        source = f"{escape_name(str(change.source))} to " if change.source else ""
        restored.append(f"{change.operation.ljust(7)}{source}{escape_name(str(change.path))}")
    yield from plans.render_section("To be restored", restored, width, colour=colour)
    skipped = [f"{escape_name(one['path'])}: {_explain(one, proposal, workspace)}" for one in proposal.skipped]
    yield from plans.render_section("Left alone", skipped, width, colour=colour, style="yellow")
    if not restored and not skipped:
        yield "Nothing to restore: none of these changes is in effect any more."


def _explain(skip: Mapping[str, str], proposal: undo.Proposal, workspace: Workspace) -> str:
    """Why a file is left alone, or some of its changes."""
    reason = skip["reason"]
    if any(str(change.path) == skip["path"] for change in proposal.changes):
        return _CHANGED_BETWEEN
    if reason == "not_kept" and has_been_cleaned(workspace):
        return _CLEARED
    return _REASONS.get(reason, reason)
