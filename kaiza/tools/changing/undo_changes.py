"""Put back exactly what a plan's own changes replaced, newest first, wherever the file still is what the change left.

That is exempt from the plan's scope and limits. What was undone before is made again only as any other change is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from kaiza.domain import errors
from kaiza.domain.audit.inverse_changes import (
    effective_changes,
    is_by_person,
    is_undo,
    paths_restored_by_person,
    touched_paths,
    undone_paths,
)
from kaiza.domain.change import Change
from kaiza.domain.paths import rel_path
from kaiza.domain.plans import scope
from kaiza.domain.text import lines, unified_diff
from kaiza.tools.changing import change_summary, target_file
from kaiza.tools.changing.undo_plan import OTHER_PLAN, PROTECTED, TAKEN_BACK, undo_changes_for
from kaiza.tools.view import Answer, ChangesView, PlansView, PreImagesView

NAME = "undo_changes"
_MAX_LISTED = 20
ChangeRecords = Sequence[Mapping[str, Any]]


class _UndoView(ChangesView, PreImagesView, PlansView, Protocol):
    """Recorded changes, what they replaced, and the plan they are undone under."""


@dataclass(frozen=True, slots=True)
class Request:
    """Which calls' changes; None means all of the session's. Only those made under this plan are undone."""

    request_ids: tuple[str, ...] | None
    plan_hash: str
    phase_id: str | None = None
    dry_run: bool = False


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Take the arguments; exactly one of the two ways to say which changes."""
    named = arguments.get("request_ids")
    if (named is None) == (arguments.get("all_of_session") is None):
        raise errors.SystemError.tool_failure(
            "MISSING_REQUIRED_FIELD" if named is None else "INVALID_INPUT_VALUE",
            human_message="Name the changes by request_ids, or pass all_of_session: true; one of the two.",
            cause={"faults": [{"argument": "request_ids", "code": "MISSING_REQUIRED_FIELD"}], "count": 1},
        )
    request_ids = None if named is None else tuple(dict.fromkeys(named))
    return Request(request_ids, arguments["plan_hash"], arguments.get("phase_id"), arguments.get("dry_run", False))


def run(request: Request, view: _UndoView) -> Answer:
    """Propose what puts things back, and list what has to be kept as it is."""
    if request.request_ids is None:
        known = view.session_changes()
        records, others = _session_records(known, request, view)
    else:
        known = view.changes_since(request.request_ids)
        records, others = _call_records(known, request), []
    changes, kept = undo_changes_for(records, view, _excluded_paths(records, known, request, view))
    again = _redone_paths(records, known)
    exempt = not any(str(path) in again for change in changes for path in change.touched_paths)
    if not exempt:
        changes = [_with_line_counts(change, view) for change in changes]
    kept += _other_plan_skips(others, changes, kept)
    output: dict[str, Any] = {
        "changes": [change_summary.change_output(change, dry_run=request.dry_run) for change in changes],
        "kept": kept,
        "dry_run": request.dry_run,
    }
    verb = "Would put back" if request.dry_run else "Put back"
    output["summary"] = f"{verb} {len(changes)} files, kept {len(kept)}."
    undone = [record["request_id"] for record in reversed(records)]
    return Answer(output, tuple(changes), {"undone": undone}, exempt=exempt)


def _session_records(known: ChangeRecords, request: Request, view: _UndoView) -> tuple[ChangeRecords, ChangeRecords]:
    """The session's changes that stand: those made under the plan, and the others."""
    own = [one for one in effective_changes(known) if one["session_id"] == view.session.session_id]
    records = [one for one in own if one["plan_hash"] == request.plan_hash]
    return records, [one for one in own if one["plan_hash"] != request.plan_hash]


def _call_records(known: ChangeRecords, request: Request) -> ChangeRecords:
    """The changes that were named; a refusal where one of them is not the plan's."""
    named = set(request.request_ids or ())
    records = [one for one in known if one["request_id"] in named and not is_by_person(one)]
    missing = named - {one["request_id"] for one in records}
    if missing:
        raise errors.SystemError.tool_failure(
            "INVALID_INPUT_VALUE",
            human_message="Some of these calls changed nothing here. Name calls that changed files.",
            cause={"request_ids": sorted(missing)[:_MAX_LISTED]},
        )
    others = [one["request_id"] for one in records if one["plan_hash"] != request.plan_hash]
    if others:
        raise errors.SystemError.tool_failure(
            "PLAN_SCOPE_VIOLATION",
            human_message=(
                "Some of these changes were not made under this plan. Name only changes that were, "
                "or ask a person to run kaiza undo."
            ),
            cause={"rule": "undo_of_the_plan", "request_ids": others[:_MAX_LISTED], "count": len(others)},
        )
    return records


def _excluded_paths(records: ChangeRecords, known: ChangeRecords, request: Request, view: _UndoView) -> dict[str, str]:
    """The paths that no undo under the plan reaches: denied or locked by now, or since then another's."""
    stored = view.plans.find_by_hash(request.plan_hash)
    plan = stored.parsed.plan if stored else None
    if plan is None:
        raise errors.SystemError.tool_failure(
            "PLAN_NOT_FOUND", human_message="The plan is not there any more. Call list_plans and decide anew."
        )
    phase = plan.phase(request.phase_id)
    put_back = paths_restored_by_person(known)
    barred = dict.fromkeys(_other_plan_paths(records, known, request), OTHER_PLAN)
    for record in records:
        for path in touched_paths(record):
            where = rel_path.parse(path)
            if put_back.get(path, 0) > record["seq"]:
                barred[path] = TAKEN_BACK
            if scope.is_denied(plan, phase, where) or not scope.is_unlocked(plan, where):
                barred[path] = PROTECTED
    return barred


def _other_plan_paths(records: ChangeRecords, known: ChangeRecords, request: Request) -> Iterator[str]:
    """The paths that a change under another plan altered since, and no undo has put back."""
    newest = {path: record["seq"] for record in records for path in touched_paths(record)}
    undone = undone_paths(known)
    for one in known:
        if one["plan_hash"] == request.plan_hash or is_undo(one):
            continue
        for path in touched_paths(one):
            if one["seq"] > newest.get(path, one["seq"]) and (one["request_id"], path) not in undone:
                yield path


def _redone_paths(records: ChangeRecords, known: ChangeRecords) -> set[str]:
    """The paths where an undo is undone, or a change once more that was undone already."""
    undone = undone_paths(known)
    return {
        path
        for record in records
        for path in touched_paths(record)
        if is_undo(record) or (record["request_id"], path) in undone
    }


def _with_line_counts(change: Change, view: _UndoView) -> Change:
    """The change with its bytes and lines, for the rules that look at them."""
    if change.operation == "move" or (change.after_hash is not None and change.size > view.caps.hashed_bytes):
        return change
    found = target_file.read_target(change.path, view, keep=view.caps.hashed_bytes)
    content = None if change.after_hash is None else view.stored_content(change.after_hash)
    if found is not None and found.content is None:
        added, removed = lines.count(content or b""), found.total_lines
    else:
        added, removed = unified_diff.count_changed_lines(found.content if found else None, content)
    return replace(change, content=content, lines_added=added, lines_removed=removed)


def _other_plan_skips(
    others: ChangeRecords, changes: Iterable[Change], kept: Iterable[Mapping[str, str]]
) -> Iterator[dict[str, str]]:
    """The paths that only changes under other plans touched."""
    told = {str(path) for change in changes for path in change.touched_paths} | {one["path"] for one in kept}
    for path in dict.fromkeys(path for record in others for path in touched_paths(record)):
        if path not in told:
            yield {"path": path, "reason": OTHER_PLAN}
