"""A change goes ahead: its intent is on disk before the first byte moves, its outcome before anybody hears of it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from kaiza.boundary.call import Call, Services, current_timestamp
from kaiza.boundary.case import refresh_case
from kaiza.boundary.outcome import as_system_error, outcome_body, record_outcome
from kaiza.domain import errors
from kaiza.domain.audit import record, redaction
from kaiza.domain.audit.inverse_changes import took_effect, touched_paths
from kaiza.domain.call import Outcome
from kaiza.domain.change import Change, bytes_written
from kaiza.domain.finding import Finding
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.parser import ParsedPlan
from kaiza.domain.plans.scope import MOVE, RequestedOperation
from kaiza.domain.text import line_diff
from kaiza.policy.case import Case
from kaiza.policy.content import scan
from kaiza.policy.judge import EXEMPT_TOOLS, judge, rules_at_intent, rules_on_result
from kaiza.store import human_decisions
from kaiza.store.audit.reader import read_records
from kaiza.store.tool_view import ToolView
from kaiza.store.workspace import Workspace
from kaiza.tools.view import Answer


def with_result(case: Case, changes: Sequence[Change], view: ToolView) -> Case:
    """The case once its result is known: the paths it really touches, its lines and bytes, what it adds."""
    paths = tuple(path for change in changes for path in (change.path, change.source) if path is not None)
    return replace(
        case,
        paths=paths,
        hidden=tuple(path for path in paths if view.is_unreadable(path)),
        lines=sum(change.lines_added + change.lines_removed for change in changes),
        bytes=sum(bytes_written(change.as_record()) for change in changes),
        content=tuple(_content_findings(case.parsed, changes, view)),
    )


def _requested_operation(change: Change) -> RequestedOperation:
    """What a change does to which file."""
    edited = change.operation == MOVE and (change.mode is not None or not change.is_plain_move)
    return RequestedOperation(change.operation, change.path, change.source, edited=edited)


def _content_findings(
    reading: ParsedPlan | None, changes: Sequence[Change], view: ToolView
) -> Sequence[tuple[RelPath, Finding]]:
    plan = reading.plan if reading else None
    if plan is None:
        return ()
    return [
        (change.path, finding)
        for change in changes
        if change.content is not None
        for finding in scan.scan_file(
            plan.policy,
            change.path.name,
            change.content,
            None if change.operation == "create" else _AddedLines(change, view),
        )
    ]


class _AddedLines:
    """The lines that a change adds; found out only when a rule asks, which it does where something stands out."""

    def __init__(self, change: Change, view: ToolView) -> None:
        self._change = change
        self._view = view

    def __contains__(self, line: object) -> bool:
        return line in self._line_numbers

    @cached_property
    def _line_numbers(self) -> set[int]:
        with self._view.open_file(self._change.source or self._change.path) as file:
            before = b"".join(file.chunks())
        spans = line_diff.diff_lines(before.split(b"\n"), (self._change.content or b"").split(b"\n"))
        return {line for span in spans for line in range(span.new_start, span.new_end)}


def execute_change(call: Call, case: Case, answer: Answer, house: Services, view: ToolView) -> Outcome | None:
    """Make the changes a tool proposed; None where the clock took the call before its intent.

    What can be foreseen is refused before the intent: nothing is written then but the refusal's record.
    """
    ground = _require_workspace(call)
    changes = tuple(answer.changes)
    prepared = ground.transactions.prepare(call.request_id, changes, undoes=tuple(answer.detail.get("undone", ())))
    case = with_result(case, changes, view)
    if case.card.name in EXEMPT_TOOLS:
        case = replace(case, exempt=answer.exempt, requested_operations=tuple(map(_requested_operation, changes)))
    judge(rules_on_result(case), case)
    call.detail.update(answer.detail, modes=prepared.original_modes)
    listed = [change.as_record() for change in changes]
    if len(listed) > 1 or answer.detail:
        record.serialize_and_hash(
            outcome_body(call, None, listed), 1, record.GENESIS
        )  # one change alone always fits into a record
    if call.arguments.get("dry_run") is True:
        return record_outcome(call, house, answer=answer) if call.claim() else None
    if not call.claim():
        return None
    try:
        _record_plan_seal(call, case, ground)
        ground.log.append(lambda: _intent_body(call, case, ground, listed), durable=True)
        ground.transactions.apply(prepared)
    except BaseException as raised:  # noqa: BLE001  the intent is on disk: whatever happens now has an outcome
        return record_outcome(call, house, error=as_system_error(raised, "FILE_WRITE_FAILED"))
    outcome = record_outcome(
        call,
        house,
        answer=answer,
        changes=listed,
        take_back=lambda: [left["path"] for left in ground.transactions.roll_back(prepared)],
    )
    ground.transactions.finalize(call.request_id)
    return outcome


def _intent_body(call: Call, case: Case, ground: Workspace, changes: Sequence[Mapping[str, Any]]) -> record.Body:
    """The intent, composed under the log's lock: all that may have changed since the rules is judged again.

    The plan too: its bytes are read again, and whether it has expired is seen from a fresh clock.
    """
    case = refresh_case(case, ground)
    judge(rules_at_intent(case), case)
    if case.card.name in EXEMPT_TOOLS:
        _require_unchanged(call, ground, changes)
    session = call.session
    detail: dict[str, Any] = {"live": ground.transactions.liveness_id}
    if "undone" in call.detail:
        detail["undone"] = call.detail["undone"]
    if case.exempt:
        detail["unlimited"] = True
    return record.new_body(
        "intent",
        timestamp=current_timestamp(),
        request_id=call.request_id,
        session_id=session.session_id if session else None,
        role=session.role if session else None,
        workspace_root=ground.root,
        tool_name=call.call_request.tool_name,
        phase_id=redaction.requested_phase_id(call.arguments),
        plan_id=case.plan_id,
        plan_hash=redaction.requested_plan_hash(call.arguments),
        arguments=call.redacted_arguments,
        changes=list(changes),
        detail=detail,
        client=session.client if session else None,
    )


def _require_unchanged(call: Call, ground: Workspace, changes: Sequence[Mapping[str, Any]]) -> None:
    """Refuse an undo where its files, or the calls it puts back, were changed or undone since it was worked out.

    A file's content does not tell: it may have been undone and made again.
    """
    named = set(call.detail.get("undone", ()))
    paths = {path for change in changes for path in (change["path"], change["source"]) if path}
    for one in read_records(ground.root, since_seq=call.last_seen_seq + 1):
        undone = (one["detail"] or {}).get("undone", ())
        if took_effect(one) and (not named.isdisjoint(undone) or not paths.isdisjoint(touched_paths(one))):
            raise errors.SystemError.tool_failure(
                "HASH_MISMATCH",
                human_message="These changes were undone or changed meanwhile. Look at the files and decide anew.",
                cause={"seq": one["seq"]},
            )


def _record_plan_seal(call: Call, case: Case, ground: Workspace) -> None:
    """The first change under an approval records the bytes that were approved, once."""
    plan = case.parsed.plan if case.parsed else None
    if plan is None or case.plan_id in case.audit_state.seals:
        return
    session = call.session
    human_decisions.store_current(ground, plan)
    members = {
        "timestamp": current_timestamp(),
        "request_id": call.request_id,
        "session_id": session.session_id if session else None,
        "role": session.role if session else None,
        "workspace_root": ground.root,
        "plan_id": plan.plan_id,
        "plan_hash": plan.plan_hash,
        "detail": {"how": "edited", "approved_by": plan.approved_by, "files": ground.count_in_scope(plan)},
    }

    def make() -> record.Body:
        if plan.plan_id in case.audit_state.seals:
            raise _AlreadySealed
        return record.new_body("plan", **members)

    with suppress(_AlreadySealed):  # whether by the same bytes is judged at the intent
        ground.log.append(make, durable=False)


class _AlreadySealed(Exception):  # noqa: N818  not a failure: another process was first
    """Another process sealed the plan meanwhile."""


def _require_workspace(call: Call) -> Workspace:
    if call.workspace is None:
        raise errors.SystemError.invariant_violation("GROUND_EXPECTED")
    return call.workspace
