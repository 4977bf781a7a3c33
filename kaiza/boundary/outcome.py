"""Records the outcome of a call, then returns it. What cannot be recorded is rolled back."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from kaiza.boundary.answer_form import limit_answer
from kaiza.boundary.call import Call, Services
from kaiza.domain import error_codes, error_envelope, errors
from kaiza.domain.audit import record, redaction
from kaiza.domain.audit.projection import Session
from kaiza.domain.call import Outcome, Receipt
from kaiza.domain.caps import Caps
from kaiza.domain.paging.list_cut import shorten_lists
from kaiza.domain.paging.response_size import AnswerBudget
from kaiza.store.workspace import Workspace
from kaiza.tools.view import Answer, PlanDraft, ReportDraft

DURABLE_TOOLS = frozenset({"begin_session", "end_session"})
"""Tools whose record is fsynced though they change no file: other processes rely on the session."""
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
    """Append the call's record, and only then return its outcome.

    If the record cannot be written, the call's files are rolled back and the outcome is an error.
    """
    workspace = call.workspace
    # Plan drafts and reports have no intent: a file left by a crash here is a draft or a report without a record.
    if answer is not None and roll_back is None:
        try:
            roll_back = _write_documents(workspace, answer.changes)
        except BaseException as raised:  # noqa: BLE001  see wrap_handler
            answer, error = None, as_system_error(raised, "INTERNAL_ERROR")
    call.detail.update(answer.detail if answer is not None else {})
    body = outcome_body(call, error, changes)
    durable = roll_back is not None or (call.call_request.tool_name in DURABLE_TOOLS and _is_sound(workspace))
    written = None
    try:
        if workspace is not None and workspace.is_recording():
            workspace.begin_recording()
            written = workspace.log.append(lambda: body, durable=durable)
    except BaseException as raised:  # noqa: BLE001  no outcome without its record
        error = _recording_error(as_system_error(raised, "AUDIT_LOG_FAILED"), roll_back() if roll_back else ())
        body = outcome_body(call, error)
    if error is not None or answer is None:
        _keep_lock(call)
        return _failure_outcome(call, error, written or body, services.caps)
    if written is not None:
        _track_session(call, services)
    receipt = _new_receipt(written) if written else None
    return Outcome(call.call_request.tool_name, answer.output, receipt=receipt, diagnostics=answer.diagnostics)


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
                workspace.sights.flush()
            else:
                workspace.reports.create(draft.name, draft.content)
                created.callback(partial(workspace.reports.remove_created, draft.name))
        return partial(_run_callbacks, created.pop_all())


def _run_callbacks(created: ExitStack) -> Sequence[str]:
    created.close()
    return ()


def _is_sound(workspace: Workspace | None) -> bool:
    return workspace is not None and workspace.damage() is None


def _recording_error(error: errors.SystemError, unrestored: Sequence[str]) -> errors.SystemError:
    """The reason why there is no record, with the files that could not be restored."""
    if not unrestored:
        return error
    return errors.SystemError.tool_failure(
        error.error_code,
        human_message="The outcome could not be recorded, and some files could not be restored. Begin a new session.",
        cause={**_members(error.cause), "not_taken_back": list(unrestored)[:20], "why": error.human_message},
    )


def _members(cause: object) -> Mapping[str, object]:
    return cause if isinstance(cause, Mapping) else {}


def _failure_outcome(call: Call, error: errors.SystemError | None, written: Mapping[str, Any], caps: Caps) -> Outcome:
    assert error is not None  # noqa: S101  an outcome is an answer or an error
    envelope = error_envelope.from_record(written)
    # Added after recording: a stack trace is for the person who debugs the server and never enters the log.
    if os.environ.get("DEBUG_STACK") == "true":
        envelope["stack_trace"] = error.format_stack()
    cap = envelope["cause"].get("cap") if isinstance(envelope["cause"], dict) else None
    return Outcome(
        call.call_request.tool_name,
        envelope=envelope,
        evidence=error.evidence and _fit_evidence(error.evidence, envelope, limit_answer(call, caps)),
        code=error_codes.lookup(error.error_code, cap),
        receipt=_new_receipt(written) if "seq" in written else None,
    )


def _fit_evidence(evidence: Mapping[str, Any], envelope: Mapping[str, Any], caps: Caps) -> Mapping[str, Any]:
    """The evidence, cut so that the failure is no larger than an answer."""
    budget = AnswerBudget.choose(caps)
    return shorten_lists(evidence, budget._replace(max_bytes=budget.max_bytes - budget.count_bytes(envelope)))


def outcome_body(
    call: Call, error: errors.SystemError | None, changes: Sequence[Mapping[str, Any]] = ()
) -> record.Body:
    """The call's record without its place in the chain."""
    # A session that failed to begin does not exist, so its record names none.
    session = call.session if error is None or call.call_request.tool_name != "begin_session" else None
    known = _known_members(call, session)
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
        detail=(dict(call.detail) if error is None else _detail_of_failure(call)) or None,
    )


def _detail_of_failure(call: Call) -> Mapping[str, Any]:
    """Of a failed call's detail, the trace that it is part of; the rest is about an answer that was not given."""
    trace = call.call_request.traceparent
    return {"traceparent": trace} if trace else {}


def _known_members(call: Call, session: Session | None) -> errors.ErrorContext:
    """Members of the envelope that a call determines; null, and left to the error, where it does not."""
    return {
        "timestamp": call.timestamp,
        "session_id": session.session_id if session else None,
        "role": session.role if session else None,
        "workspace_root": session.workspace_root if session else None,
        "tool_name": redaction.truncate_name(call.call_request.tool_name),
        "phase_id": redaction.requested_phase_id(call.arguments),
        "plan_hash": redaction.requested_plan_hash(call.arguments),
    }


def _new_receipt(written: Mapping[str, Any]) -> Receipt:
    return Receipt(written["seq"], written["entry_hash"])


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
    """Convert any exception to a SystemError; one whose class names a registered code keeps that code."""
    if isinstance(raised, errors.SystemError):
        return raised
    named = getattr(raised, "error_code", None) or getattr(raised, "code", None)
    known = named if isinstance(named, str) and named in error_codes.SYSTEM_ERROR_CODES else error_code
    return errors.SystemError.from_unknown(
        raised,
        error_code=known,
        human_message="An unexpected error occurred. Try once more, then report it with the request's time.",
    )
