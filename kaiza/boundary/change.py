"""Executes a change: intent in the log, then the files, then the outcome in the log.

The intent is on disk before the first file is touched, so that after a crash recovery knows what was under way.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from kaiza.boundary import plan_seal
from kaiza.boundary.call import Call, Services
from kaiza.boundary.case import refresh_case
from kaiza.boundary.outcome import as_system_error, conclude, outcome_body, record_outcome
from kaiza.clock import current_timestamp
from kaiza.domain import errors
from kaiza.domain.audit import record, redaction
from kaiza.domain.audit.inverse_changes import took_effect, touched_paths
from kaiza.domain.call import Outcome
from kaiza.domain.change import USUAL_MODE, Change, bytes_written
from kaiza.domain.finding import Finding
from kaiza.domain.paths.nested_names import NestedPath
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plain_values import ask
from kaiza.domain.plans.parser import ParsedPlan
from kaiza.domain.plans.plan import MAX_BYTES
from kaiza.domain.plans.scope import MOVE, RequestedOperation
from kaiza.domain.text import content_diff
from kaiza.policy.case import Case
from kaiza.policy.content import scan
from kaiza.policy.judge import EXEMPT_TOOLS, judge, rules_at_intent, rules_on_result
from kaiza.store.audit.reader import read_records
from kaiza.store.disk import disk_reserve
from kaiza.store.documents.nested_workspaces import find_new_plan
from kaiza.store.documents.plan_files import read_limited
from kaiza.store.tool_view import ToolView
from kaiza.store.workspace import Workspace
from kaiza.tools.view import Answer


def execute_change(call: Call, case: Case, answer: Answer, services: Services, view: ToolView) -> Outcome | None:
    """Make the changes that a tool proposed; None where the deadline claimed the call before its intent."""
    workspace = view.workspace
    changes = tuple(answer.changes)
    # Everything that can be refused is refused before the intent, while no file and no journal has been touched.
    prepared = workspace.transactions.prepare(call.request_id, changes, undoes=tuple(answer.detail.get("undone", ())))
    case = _with_result(case, changes, answer, view)
    judge(rules_on_result(case), case)
    # The mode of created files is known later; its room is needed now.
    call.detail.update(answer.detail, modes=prepared.original_modes, created_mode=None)
    change_records = [change.as_record() for change in changes]
    if len(change_records) > 1 or answer.detail:
        # CAP_EXCEEDED here if the outcome is too long for one record. A single change always fits.
        record.serialize_and_hash(outcome_body(call, None, change_records), 1, record.GENESIS)
    del call.detail["created_mode"]
    if call.arguments.get("dry_run") is True:
        return record_outcome(call, services, answer=answer) if call.claim() else None
    # Claimed before the intent and not after: once the intent is on disk, a timeout must not answer for the change.
    if not call.claim():
        return None
    try:
        disk_reserve.keep(workspace.blobs.kaiza_dir)
        plan_seal.record_plan_seal(call, case, workspace)
        workspace.log.append(lambda: _intent_body(call, case, workspace, change_records), durable=True)
        workspace.transactions.apply(prepared)
    except BaseException as raised:  # noqa: BLE001  the intent may be on disk, and every intent needs an outcome
        return record_outcome(call, services, error=as_system_error(raised, "FILE_WRITE_FAILED"))
    created_mode = ask(partial(workspace.transactions.created_mode, call.request_id), None)
    if created_mode != USUAL_MODE:
        call.detail["created_mode"] = created_mode
    outcome = record_outcome(
        call,
        services,
        answer=answer,
        changes=change_records,
        roll_back=lambda: [failed["path"] for failed in workspace.transactions.roll_back(prepared)],
    )
    return conclude(outcome, partial(workspace.transactions.finalize, call.request_id))


def _with_result(case: Case, changes: Sequence[Change], answer: Answer, view: ToolView) -> Case:
    """The case with the tool's result: the paths that it touches, its lines and bytes, the content that it adds."""
    paths = tuple(path for change in changes for path in (change.path, change.source) if path is not None)
    case = replace(
        case,
        paths=paths,
        hidden=tuple(path for path in paths if view.is_unreadable(path)),
        nested=(*view.workspace.nested_paths(paths), *_new_plans(changes, view)),
        lines=sum(change.lines_added + change.lines_removed for change in changes),
        bytes=sum(bytes_written(change.as_record()) for change in changes),
        content=tuple(_content_findings(case.parsed, changes, view)),
    )
    if case.card.name not in EXEMPT_TOOLS:
        return case
    return replace(case, exempt=answer.exempt, requested_operations=tuple(map(_requested_operation, changes)))


def _new_plans(changes: Sequence[Change], view: ToolView) -> Iterator[NestedPath]:
    """The changes that would put a plan below the root, and with it a workspace that they approve for themselves."""
    for change in changes:
        if change.operation != "delete":
            nested = find_new_plan(change.path, partial(_read_result, change, view))
            if nested is not None:
                yield nested


def _read_result(change: Change, view: ToolView) -> bytes:
    """The content that the change puts at its path, up to what a plan may have and one byte more."""
    if change.content is not None:
        return change.content
    if change.is_plain_move:
        with view.open_file(change.source or change.path) as file:
            return read_limited(file)[0]
    chunks, content = view.workspace.blobs.chunks(change.after_hash or ""), b""
    while len(content) <= MAX_BYTES and (chunk := next(chunks, b"")):
        content += chunk
    return content


def _requested_operation(change: Change) -> RequestedOperation:
    edited = change.operation == MOVE and (change.mode is not None or not change.is_plain_move)
    return RequestedOperation(change.operation, change.path, change.source, edited=edited)


def _content_findings(
    parsed: ParsedPlan | None, changes: Sequence[Change], view: ToolView
) -> Sequence[tuple[RelPath, Finding]]:
    plan = parsed.plan if parsed else None
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
    """Numbers of the lines that a change adds. Diffed on first use: most content has no finding to ask about."""

    def __init__(self, change: Change, view: ToolView) -> None:
        self._change = change
        self._view = view

    def __contains__(self, line: object) -> bool:
        return any(line in numbers for numbers in self._line_numbers)

    @cached_property
    def _line_numbers(self) -> Sequence[range]:
        with self._view.open_file(self._change.source or self._change.path) as file:
            before = b"".join(file.chunks())
        # Both end a line: text that only gets a line break after it is not new.
        spans = content_diff.diff_contents(before + b"\n", (self._change.content or b"") + b"\n")
        return [range(span.lines.new_start, span.lines.new_end) for span in spans]


def _intent_body(call: Call, case: Case, workspace: Workspace, changes: Sequence[Mapping[str, Any]]) -> record.Body:
    """Judge the case once more and compose the intent.

    The log calls this under its lock, after reading what other processes appended: between this judgement and the
    intent no freeze, revocation or other change can come in. The plan is read again, against a fresh clock.
    """
    case = refresh_case(case, workspace)
    judge(rules_at_intent(case), case)
    if case.card.name in EXEMPT_TOOLS:
        _require_unchanged(call, workspace, changes)
    session = call.session
    detail: dict[str, Any] = {"live": workspace.transactions.liveness_id}
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
        workspace_root=workspace.root,
        tool_name=call.call_request.tool_name,
        phase_id=redaction.requested_phase_id(call.arguments),
        plan_id=case.plan_id,
        plan_hash=redaction.requested_plan_hash(call.arguments),
        arguments=call.redacted_arguments,
        changes=list(changes),
        detail=detail,
        client=session.client if session else None,
        principal=call.principal_label,
    )


def _require_unchanged(call: Call, workspace: Workspace, changes: Sequence[Mapping[str, Any]]) -> None:
    """Refuse an undo if its files were changed, or its calls undone, after the tool had read the log.

    The hashes of the files are not enough: a change may have been undone and made again.
    """
    own_undone = set(call.detail.get("undone", ()))
    paths = {path for change in changes for path in (change["path"], change["source"]) if path}
    for later in read_records(workspace.root, since_seq=call.last_seen_seq + 1):
        undone = later.detail.get("undone", ())
        if took_effect(later) and (not own_undone.isdisjoint(undone) or not paths.isdisjoint(touched_paths(later))):
            raise errors.SystemError.tool_failure(
                "HASH_MISMATCH",
                human_message="These changes were undone or changed meanwhile. Read the files again and decide again.",
                cause={"seq": later.seq},
            )
