"""What a call came to: its record first, and only then its outcome."""

import os
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kaiza.boundary.call import Call, Services
from kaiza.boundary.documents import write_proposed
from kaiza.domain import error_codes, error_envelope, errors
from kaiza.domain.audit import record, redaction
from kaiza.domain.call import Outcome, Receipt
from kaiza.store.workspace import Workspace
from kaiza.tools.view import Answer

DURABLE_TOOLS = frozenset({"begin_session", "end_session"})


def record_outcome(
    call: Call,
    house: Services,
    *,
    answer: Answer | None = None,
    error: errors.SystemError | None = None,
    changes: Sequence[Mapping[str, Any]] = (),
    take_back: Callable[[], Sequence[str]] | None = None,
) -> Outcome:
    """Steps 10 and 11: the outcome's record, and only then the outcome. What cannot be recorded is taken back."""
    ground = call.workspace
    if answer is not None and take_back is None:
        try:
            take_back = write_proposed(ground, answer.changes)
        except BaseException as raised:  # noqa: BLE001  see the handler
            answer, error = None, as_system_error(raised, "INTERNAL_ERROR")
    call.detail.update(answer.detail if answer is not None else {})
    body = outcome_body(call, error, changes)
    durable = take_back is not None or (call.call_request.tool_name in DURABLE_TOOLS and _is_sound(ground))
    written = None
    try:
        if ground is not None and ground.is_recording():
            written = ground.log.append(lambda: body, durable=durable)
    except BaseException as raised:  # noqa: BLE001  an outcome that is not on disk is not an outcome
        error = _recording_error(as_system_error(raised, "AUDIT_LOG_FAILED"), take_back() if take_back else ())
        body = outcome_body(call, error)
    if error is not None or answer is None:
        return _failure_outcome(call, error, written or body)
    if written is not None:
        _track_session(call, house)
    return Outcome(
        call.call_request.tool_name, output=answer.output, receipt=_new_receipt(written) if written else None
    )


def _is_sound(ground: Workspace | None) -> bool:
    return ground is not None and ground.damage() is None


def _recording_error(error: errors.SystemError, left: Sequence[str]) -> errors.SystemError:
    """Why there is no record; with the files that could not be put back, if there are any."""
    if not left:
        return error
    return errors.SystemError.tool_failure(
        error.error_code,
        human_message="The record could not be written, and some files could not be put back. Begin a new session.",
        cause={"not_taken_back": list(left)[:20], "why": error.human_message},
    )


def _failure_outcome(call: Call, error: errors.SystemError | None, written: Mapping[str, Any]) -> Outcome:
    assert error is not None  # noqa: S101  an outcome is an answer or an error
    shown = error_envelope.from_record(written)
    if os.environ.get("DEBUG_STACK") == "true":
        shown["stack_trace"] = error.context.get("stack_trace") or "".join(traceback.format_exception(error))
    cap = shown["cause"].get("cap") if isinstance(shown["cause"], dict) else None
    return Outcome(
        call.call_request.tool_name,
        envelope=shown,
        evidence=error.evidence,
        code=error_codes.lookup(error.error_code, cap),
        receipt=_new_receipt(written) if "seq" in written else None,
    )


def outcome_body(
    call: Call, error: errors.SystemError | None, changes: Sequence[Mapping[str, Any]] = ()
) -> record.Body:
    """The call's record, before its place in the chain is known."""
    session = call.session if error is None or call.call_request.tool_name != "begin_session" else None
    return record.new_body(
        "call",
        timestamp=call.timestamp,
        request_id=call.request_id,
        session_id=session.session_id if session else None,
        role=session.role if session else None,
        workspace_root=session.workspace_root if session else None,
        tool_name=redaction.truncate_name(call.call_request.tool_name),
        phase_id=redaction.requested_phase_id(call.arguments),
        plan_id=call.plan_id,
        plan_hash=redaction.requested_plan_hash(call.arguments),
        outcome="error" if error else "ok",
        error_code=error.error_code if error else None,
        human_message=error.human_message if error else None,
        invariant_id=error.invariant_id if error else None,
        cause=error_envelope.bound_cause(error.cause) if error else None,
        arguments=call.redacted_arguments,
        changes=list(changes),
        duration_ms=int((time.monotonic() - call.started) * 1000),
        client=session.client if session else call.call_request.client,
        detail=dict(call.detail) if error is None and call.detail else None,
    )


def _new_receipt(written: Mapping[str, Any]) -> Receipt:
    return Receipt(written["seq"], written["entry_hash"])


def _track_session(call: Call, house: Services) -> None:
    """Keep which sessions this process began, and the index where sessions come and go."""
    session = call.session
    if session is None or call.call_request.tool_name not in DURABLE_TOOLS:
        return
    if call.call_request.tool_name == "begin_session":
        house.own_sessions.add(session.session_id)
    else:
        house.own_sessions.discard(session.session_id)
    if call.workspace is not None:
        call.workspace.save_snapshot(call.timestamp)


def as_system_error(raised: BaseException, error_code: str) -> errors.SystemError:
    """A SystemError of whatever was thrown; an older error class that names a registered code keeps it."""
    if isinstance(raised, errors.SystemError):
        return raised
    named = getattr(raised, "error_code", None) or getattr(raised, "code", None)
    known = named if isinstance(named, str) and named in error_codes.REGISTRY else error_code
    return errors.SystemError.from_unknown(
        raised,
        error_code=known,
        human_message="Something failed that nobody foresaw. Try once more, then report it with the request's time.",
        stack_trace="".join(traceback.format_exception(raised)),
    )
