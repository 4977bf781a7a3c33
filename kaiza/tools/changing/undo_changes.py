"""Tool `undo_changes`: restore what a plan's own changes replaced, newest first; files modified since are left alone.

A plain undo is exempt from the plan's scope and limits, which allowed and counted the change before. An undo of an undo
makes the change again, and is judged and counted like any other.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kaiza.domain import errors
from kaiza.domain.audit.inverse_changes import (
    invert,
    is_by_person,
    is_undo,
    paths_restored_by_person,
    touched_paths,
)
from kaiza.domain.audit.record import Record
from kaiza.domain.audit.undone_changes import effective_changes, undone_paths
from kaiza.domain.change import Change
from kaiza.domain.paging.list_cut import cut_lists
from kaiza.domain.paths import rel_path
from kaiza.domain.plans import scope
from kaiza.domain.text import lines, unified_diff
from kaiza.tools.changing import change_summary, target_file
from kaiza.tools.changing.undo_plan import OTHER_PLAN, PROTECTED, TAKEN_BACK, require_room, undo_changes_for
from kaiza.tools.view import Answer, WorkspaceView

_MAX_LISTED = 20
ChangeRecords = Sequence[Record]
TouchedPaths = Sequence[tuple[Record, Sequence[str]]]
"""Records, each with the paths of it that are to be undone."""


@dataclass(frozen=True, slots=True)
class Request:
    """The calls to undo, None for all of the session's, and the plan: only changes made under it are undone."""

    request_ids: tuple[str, ...] | None
    plan_hash: str
    phase_id: str | None = None
    dry_run: bool = False


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Require either request_ids or all_of_session."""
    request_ids = arguments.get("request_ids")
    if (request_ids is None) == (arguments.get("all_of_session") is None):
        raise errors.SystemError.tool_failure(
            "MISSING_REQUIRED_FIELD" if request_ids is None else "INVALID_INPUT_VALUE",
            human_message="Pass either request_ids or all_of_session: true.",
            cause={"faults": [{"argument": "request_ids", "code": "MISSING_REQUIRED_FIELD"}], "count": 1},
        )
    unique_ids = None if request_ids is None else tuple(dict.fromkeys(request_ids))
    return Request(unique_ids, arguments["plan_hash"], arguments.get("phase_id"), arguments.get("dry_run", False))


def run(request: Request, view: WorkspaceView) -> Answer:
    """Propose the changes that restore the files, and list the paths that are left as they are."""
    others: ChangeRecords = ()
    if request.request_ids is None:
        history = view.session_changes()
        own = [record for record in effective_changes(history) if record.session_id == view.session.session_id]
        records = [record for record in own if record.plan_hash == request.plan_hash]
        others = [record for record in own if record.plan_hash != request.plan_hash]
    else:
        history = view.changes_since(request.request_ids)
        records = _call_records(history, request.request_ids, request.plan_hash)
    undone = undone_paths(history)
    # Of the whole session only what is not undone already; a call that is named is undone again.
    skipped = undone if request.request_ids is None else set()
    touched = [
        (record, [path for path in touched_paths(record) if (record.request_id, path) not in skipped])
        for record in records
    ]
    excluded = _excluded_paths(touched, history, undone, request, view)
    selected = {record.seq for record in records}
    inverses = invert(reversed(history), lambda record: record.seq in selected)
    undone_calls = [record.request_id for record in reversed(records) if record.request_id is not None]
    require_room(inverses, undone_calls, view, excluded)
    changes, kept = undo_changes_for(inverses, view, excluded)
    redone = {
        path for record, paths in touched for path in paths if is_undo(record) or (record.request_id, path) in undone
    }
    # An undo of an undo, or a second undo, makes a change again. One path of that kind makes the whole call a change
    # under all rules: a call is judged once, not by path.
    exempt = not any(str(path) in redone for change in changes for path in change.touched_paths)
    if not exempt:
        changes = [_with_line_counts(change, view) for change in changes]
    listed = {str(path) for change in changes for path in change.touched_paths} | {skip["path"] for skip in kept}
    elsewhere = dict.fromkeys(path for record in others for path in touched_paths(record) if path not in listed)
    kept += [{"path": path, "reason": OTHER_PLAN} for path in elsewhere]
    verb = "Would restore" if request.dry_run else "Restored"
    output: dict[str, Any] = {
        "changes": [change_summary.change_output(change, dry_run=request.dry_run) for change in changes],
        "kept": kept,
        "dry_run": request.dry_run,
        "summary": f"{verb} {len(changes)} files, kept {len(kept)}.",
    }
    output = cut_lists(output, view.caps, "Some are not listed: read_audit_log has all, once they are made.")
    return Answer(output, tuple(changes), {"undone": undone_calls}, exempt=exempt)


def _call_records(history: ChangeRecords, request_ids: Iterable[str], plan_hash: str) -> list[Record]:
    """The records of the requested calls; an error if one of them is not the plan's."""
    requested = set(request_ids)
    # A person's undo has an id too, but no tool may undo it.
    records = [record for record in history if record.request_id in requested and not is_by_person(record)]
    missing = requested - {record.request_id for record in records}
    if missing:
        raise errors.SystemError.tool_failure(
            "INVALID_INPUT_VALUE",
            human_message="Some of these calls changed no file here. Pass request ids of calls that did.",
            cause={"request_ids": sorted(missing)[:_MAX_LISTED]},
        )
    others = [record.request_id for record in records if record.plan_hash != plan_hash]
    if others:
        raise errors.SystemError.tool_failure(
            "PLAN_SCOPE_VIOLATION",
            human_message=(
                "Some of these changes were not made under this plan. Pass only changes that were, "
                "or ask a person to run kaiza undo."
            ),
            cause={"rule": "undo_of_the_plan", "request_ids": others[:_MAX_LISTED], "count": len(others)},
        )
    return records


def _excluded_paths(
    touched: TouchedPaths,
    history: ChangeRecords,
    undone: Container[tuple[str | None, str]],
    request: Request,
    view: WorkspaceView,
) -> dict[str, str]:
    """Paths that no undo under this plan may touch, each with its reason."""
    stored = view.plans.find_by_hash(request.plan_hash)
    plan = stored.parsed.plan if stored else None
    if plan is None:
        raise errors.SystemError.tool_failure(
            "PLAN_NOT_FOUND", human_message="The plan does not exist any more. Call list_plans and choose another."
        )
    phase = plan.phase(request.phase_id)
    restored = paths_restored_by_person(history)
    newest = {path: record.seq for record, paths in touched for path in paths}
    # Another plan has changed these since, and that change was not undone.
    excluded = {
        path: OTHER_PLAN
        for record in history
        if record.plan_hash != request.plan_hash and not is_undo(record)
        for path in touched_paths(record)
        if record.seq > newest.get(path, record.seq) and (record.request_id, path) not in undone
    }
    for record, paths in touched:
        for path in paths:
            parsed = rel_path.parse(path)
            # What a person has undone stays undone, whichever older change of the path an agent names.
            if restored.get(path, 0) > record.seq:
                excluded[path] = TAKEN_BACK
            if scope.is_denied(plan, phase, parsed) or not scope.is_unlocked(plan, parsed):
                excluded[path] = PROTECTED
    return excluded


def _with_line_counts(change: Change, view: WorkspaceView) -> Change:
    """The change with its content and line counts, for the rules that limit them."""
    if change.operation == "move" or (change.after_hash is not None and change.size > view.caps.hashed_bytes):
        return change
    target = target_file.read_target(change.path, view, keep=view.caps.hashed_bytes)
    content = None if change.after_hash is None else view.stored_content(change.after_hash)
    if target is not None and target.content is None:
        added, removed = lines.count(content or b""), target.total_lines
    else:
        added, removed = unified_diff.count_changed_lines(target.content if target else None, content)
    return replace(change, content=content, lines_added=added, lines_removed=removed)
