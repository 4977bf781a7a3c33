"""Records the outcome of a call, then returns it. What cannot be recorded is rolled back."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from kaiza.boundary.call import Call, Services, limit_answer
from kaiza.boundary.case import find_plan
from kaiza.domain import error_codes, error_envelope, errors
from kaiza.domain.audit import record, redaction
from kaiza.domain.audit.projection import Session
from kaiza.domain.call import Outcome, Receipt
from kaiza.domain.caps import Caps
from kaiza.domain.paging.list_cut import shorten_lists
from kaiza.domain.paging.response_size import AnswerBudget
from kaiza.domain.plain_values import ask, describe_exception, is_instance, plain_text, type_name
from kaiza.store.audit import log_file
from kaiza.store.config import roots
from kaiza.store.human_decisions import record_withdrawals
from kaiza.store.workspace import Workspace
from kaiza.tools.view import Answer, PlanDraft, ReportDraft

DURABLE_TOOLS = frozenset({"begin_session", "end_session"})
"""Tools whose record is fsynced though they change no file: other processes rely on the session."""
_UNEXPECTED = "An unexpected error occurred. Try once more, then report it with the request's time."
RollBack = Callable[[], Sequence[str]]
"""Undoes what a call wrote; returns the paths that could not be restored."""


def record_outcome(
    call: Call,
    services: Services,
    *,
    answer: Answer | None = None,
    error: errors.SystemError | None = None,
    changes: Sequence[Mapping[str, Any]] = (),
    roll_back: RollBack | None = None,
) -> Outcome:
    """Append the call's record, and only then return its outcome. Never raises.

    If the record cannot be composed or written, the call's files are rolled back and the outcome is an error.
    """
    try:
        if answer is not None:
            # Drafts and reports have no intent: a file left by a crash here is a draft or a report without a record.
            roll_back = roll_back or _write_documents(call.workspace, answer.changes)
            call.detail.update(answer.detail)
        body = _compose_body(call, error, changes)
    except BaseException as raised:  # noqa: BLE001  see wrap_handler
        error = error or _recording_error(as_system_error(raised, "INTERNAL_ERROR"), _take_back(roll_back))
        body, roll_back = _compose_failure(call, error), None
    written = None
    try:
        is_durable = roll_back is not None
        if call.call_request.tool_name in DURABLE_TOOLS and call.workspace is not None:
            is_durable = is_durable or call.workspace.damage() is None
        written = _append(call.workspace, body, durable=is_durable)
    except BaseException as raised:  # noqa: BLE001  no outcome without its record
        error = _recording_error(as_system_error(raised, "AUDIT_LOG_FAILED"), _take_back(roll_back))
        body = _compose_failure(call, error)
    if error is not None or answer is None:
        return conclude(
            _failure_outcome(call, error, written or record.Record(body), services.caps), partial(_keep_lock, call)
        )
    receipt = _new_receipt(written) if written is not None else None
    outcome = Outcome(call.call_request.tool_name, answer.output, receipt=receipt, diagnostics=answer.diagnostics)
    return outcome if written is None else conclude(outcome, partial(_track_session, call, services))


def conclude(outcome: Outcome, step: Callable[[], None]) -> Outcome:
    """Take a step that follows the record. If it fails, the outcome is as recorded, and says so."""
    try:
        step()
    except BaseException as raised:  # noqa: BLE001  see wrap_handler
        note = f"The call is recorded as it is answered, but then something failed ({type_name(raised)})."
        return outcome._replace(diagnostics=(*outcome.diagnostics, f"{note} Run kaiza doctor if this happens again."))
    return outcome


def _compose_body(call: Call, error: errors.SystemError | None, changes: Sequence[Mapping[str, Any]]) -> record.Body:
    """The call's record. CAP_EXCEEDED if it is too long; a call without detail and with one change always fits."""
    body = outcome_body(call, error, changes)
    if error is not None or call.detail or len(changes) > 1:
        record.serialize_and_hash(body, 1, record.GENESIS)
    return body


def _compose_failure(call: Call, error: errors.SystemError) -> record.Body:
    """The record of a failure. If it cannot be composed, the one that depends on nothing that a caller or tool sent."""
    minimal = errors.SystemError.tool_failure(error.error_code)
    return ask(partial(_compose_body, call, error, ()), None) or record.new_body(
        "call",
        **minimal.to_envelope({"timestamp": call.timestamp, "tool_name": plain_text(call.call_request.tool_name, 64)}),
        request_id=call.request_id,
        outcome="error",
    )


def _append(workspace: Workspace | None, body: record.Body, *, durable: bool) -> record.Record | None:
    """Append a record; None where nothing is recorded."""
    if workspace is None or not prepare_recording(workspace):
        return None
    workspace.begin_recording()
    record_withdrawals(workspace)
    return workspace.log.append(lambda: body, durable=durable)


def prepare_recording(workspace: Workspace) -> bool:
    """Whether calls are recorded; creates `audit/` beside `plans/` if it is missing. AUDIT_LOG_FAILED if it cannot.

    A directory without `plans/` is no workspace, and nothing is written there.
    """
    if not workspace.is_recording() and roots.has_plans(workspace.root):
        log_file.create_directory(workspace.root)
    return workspace.is_recording()


def _take_back(roll_back: RollBack | None) -> Sequence[str]:
    """Undo what the call wrote; return what could not be restored."""
    return ask(roll_back, ("unknown",)) if roll_back else ()


def _write_documents(workspace: Workspace | None, proposals: Sequence[Any]) -> RollBack | None:
    """Create the plan drafts and reports that a tool proposed, all or none; return how to delete them again."""
    drafts = [proposal for proposal in proposals if isinstance(proposal, PlanDraft | ReportDraft)]
    if not drafts or workspace is None:
        return None
    with ExitStack() as created:
        for draft in drafts:
            if isinstance(draft, PlanDraft):
                workspace.plans.create(draft.plan_id, draft.content)
                created.callback(partial(workspace.plans.remove_created, draft.plan_id, draft.content))
                workspace.seen_plans.flush()
            else:
                workspace.reports.create(draft.name, draft.content)
                created.callback(partial(workspace.reports.remove_created, draft.name))
        return partial(_run_callbacks, created.pop_all())


def _run_callbacks(created: ExitStack) -> Sequence[str]:
    created.close()
    return ()


def _recording_error(error: errors.SystemError, unrestored: Sequence[str]) -> errors.SystemError:
    """The reason why there is no record, with the files that could not be restored."""
    if not unrestored:
        return error
    cause = error.cause if isinstance(error.cause, Mapping) else {}
    return errors.SystemError.tool_failure(
        error.error_code,
        human_message="The outcome could not be recorded, and some files could not be restored. Begin a new session.",
        cause={**cause, "not_taken_back": list(unrestored)[:20], "why": error.human_message},
    )


def _failure_outcome(call: Call, error: errors.SystemError | None, written: record.Record, caps: Caps) -> Outcome:
    assert error is not None  # noqa: S101  an outcome is an answer or an error
    envelope = error_envelope.from_record(written.members)
    # Added after recording: a stack trace is for the person who debugs the server and never enters the log.
    if os.environ.get("DEBUG_STACK") == "true":
        envelope["stack_trace"] = error.format_stack()
    evidence = error.evidence
    if evidence:  # cut so that the failure is no larger than an answer
        budget = AnswerBudget.choose(limit_answer(call, caps))
        left = budget.max_bytes - budget.count_bytes(envelope)
        evidence = shorten_lists(evidence, budget._replace(max_bytes=left))
    cap = envelope["cause"].get("cap") if isinstance(envelope["cause"], dict) else None
    return Outcome(
        call.call_request.tool_name,
        envelope=envelope,
        evidence=evidence,
        code=error_codes.lookup(envelope["error_code"], cap),
        receipt=_new_receipt(written) if "seq" in written.members else None,
    )


def outcome_body(
    call: Call, error: errors.SystemError | None, changes: Sequence[Mapping[str, Any]] = ()
) -> record.Body:
    """The call's record without its place in the chain."""
    # A session that failed to begin does not exist, so its record names none.
    session = call.session if error is None or call.call_request.tool_name != "begin_session" else None
    known = _known_members(call, session)
    # A failed call keeps only `traceparent`: the other details describe an answer, and it has none.
    trace = {"traceparent": call.call_request.traceparent} if call.call_request.traceparent else {}
    return record.new_body(
        "call",
        **(error.to_envelope(known) if error else known),
        request_id=call.request_id,
        plan_id=call.plan_id,
        outcome="error" if error else "ok",
        arguments=call.redacted_arguments,
        changes=list(changes),
        duration_ms=int((time.monotonic() - call.started) * 1000),
        client=session.client if session else call.call_request.client,
        principal=call.principal_label,
        detail=(dict(call.detail) if error is None else trace) or None,
    )


def _known_members(call: Call, session: Session | None) -> errors.ErrorContext:
    """Members of the envelope that a call determines; null, and left to the error, where it does not."""
    return {
        "timestamp": call.timestamp,
        "session_id": session.session_id if session else None,
        "role": session.role if session else None,
        "workspace_root": session.workspace_root if session else None,
        "tool_name": redaction.truncate_name(call.call_request.tool_name),
        "phase_id": redaction.requested_phase_id(call.arguments),
        "plan_hash": ask(partial(_find_plan_hash, call), None),
    }


def _find_plan_hash(call: Call) -> str | None:
    """The requested hash if a plan of the call's workspace has it, or had it when it was approved or sealed."""
    plan_id = call.plan_id
    # A call that was refused before its plan was looked for.
    if plan_id is None and call.workspace is not None:
        plan_id, _ = find_plan(call, call.workspace)
    return redaction.requested_plan_hash(call.arguments) if plan_id else None


def _new_receipt(written: record.Record) -> Receipt:
    return Receipt(written.seq, written.entry_hash)


def _track_session(call: Call, services: Services) -> None:
    """Update the sessions that this process began, and save a snapshot of the projected state."""
    session = call.session
    if session is None or call.call_request.tool_name not in DURABLE_TOOLS:
        return
    if call.call_request.tool_name == "begin_session":
        services.own_sessions.add(session.session_id)
        services.clock.note_use(session.session_id)
        if call.workspace is not None:
            call.workspace.plan_watch.start()
    else:
        services.own_sessions.discard(session.session_id)
    if call.workspace is not None:
        call.workspace.save_snapshot(call.timestamp)


def _keep_lock(call: Call) -> None:
    """Save a snapshot if this call locked its role: the lock then holds even if the log is deleted."""
    role = call.session.role if call.session else ""
    if call.workspace is not None:
        lock = call.workspace.audit_state.locks.get(role)
        if lock is not None and lock.request_id == call.request_id:
            call.workspace.save_snapshot(call.timestamp)


def as_system_error(raised: BaseException, error_code: str) -> errors.SystemError:
    """Convert any exception to a SystemError of plain values; one that names a registered code keeps it. Never raises.

    What describes the exception is its own code, which may fail in any way; from here on there are only values.
    """
    plain = ask(partial(_describe_error, raised, error_code), None)
    return plain or errors.SystemError.tool_failure(error_code, human_message=_UNEXPECTED)


def _describe_error(raised: BaseException, error_code: str) -> errors.SystemError:
    if is_instance(raised, errors.SystemError):
        return errors.SystemError.copy_plain(raised)  # its own class may have another
    named = (ask(partial(getattr, raised, name), None) for name in ("error_code", "code"))
    codes = (plain_text(code) for code in named if is_instance(code, str))
    known = next((code for code in codes if code in error_codes.SYSTEM_ERROR_CODES), error_code)
    return errors.SystemError.from_unknown(
        raised, error_code=known, human_message=_UNEXPECTED, cause=describe_exception(raised)
    )
