"""Applies audit records to the projected state, one function for each kind of record.

Deterministic: the same records give the same state. Rules are checked elsewhere.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from kaiza.domain import error_codes
from kaiza.domain.audit.deterministic import is_deterministic
from kaiza.domain.audit.projection import (
    WITHDRAWAL,
    AuditState,
    PlanSeal,
    RoleLock,
    Session,
    is_change_attempt,
    is_late_count,
    is_locking_refusal,
    merge_freezes,
    merge_times,
    parse_freeze,
)
from kaiza.domain.audit.record import Record, extract_intent, require_carried_state, require_members, require_texts
from kaiza.domain.audit.recorded_names import restore_names
from kaiza.domain.caps import MAX_REPORTS_PER_DAY
from kaiza.domain.plans.plan import PlanUsage, combine_usage
from kaiza.domain.roles import ROLES

_MAX_RELEASES_KEPT = 10
_MAX_STATES_KEPT = 8
_MAX_STATE_ID = 64
_PLAN_DECISIONS = ("approve", "reject", "revoke")


def apply_record(state: AuditState, record: Record) -> None:
    """Apply the next record of the log, or nothing of it if a member has the wrong type; but a freeze always counts."""
    if record.seq == 1:
        state.is_deterministic = is_deterministic(record)
    handler = _HANDLERS.get(record.kind)
    if handler is None:
        return
    # A valid chain says nothing about a record's members: a log that came with a clone may contain anything.
    with suppress(TypeError, KeyError, AttributeError, ValueError):
        handler(state, restore_names(record) if record.members.get("detail") else record)


def apply_restrictions(state: AuditState, record: Record, own_state: str | None) -> None:
    """Apply a record that may have been written elsewhere: only what restricts, and sessions of this machine.

    `own_state` is the id of this machine's state directory, which its `begin_session` records carry.
    """
    if record.seq == 1:
        state.is_deterministic = is_deterministic(record)
    with suppress(TypeError, KeyError, AttributeError, ValueError):
        record = restore_names(record)
        if record.kind == "call":
            _restrict_by_call(state, record, own_state)
        elif record.kind == "person":
            _restrict_by_decision(state, record)
        elif record.kind == "recovery":
            _restrict_by_recovery(state, record)


def _restrict_by_call(state: AuditState, record: Record, own_state: str | None) -> None:
    _require_call(record)
    if record.tool_name == "begin_session":
        is_own = own_state is not None and record.detail.get("state") == own_state
        _apply_begin(state, record, is_followed=is_own)
        return
    ok = record.outcome == "ok"
    _apply_session_call(state, record, ok=ok)
    if ok and record.changes:
        # Its intent was written elsewhere as well. The outcome alone charges, so that a refund is never needed.
        _charge(state, extract_intent(record), 1)


def _restrict_by_decision(state: AuditState, record: Record) -> None:
    action = record.detail.get("action")
    if action == "freeze":
        state.frozen = merge_freezes(state.frozen, parse_freeze(record.detail, record.timestamp))
    elif action == "accept":
        _apply_carried_restrictions(state, record)
    elif action in ("reject", "revoke"):
        (plan_id,) = require_texts(record.members, "plan_id")
        state.withdrawn[plan_id] = action
    _end_sessions(state, revoked_principal(record))


def _restrict_by_recovery(state: AuditState, record: Record) -> None:
    result = record.detail.get("result")
    if result == "state_retired":
        _apply_carried_restrictions(state, record)
    elif result == WITHDRAWAL:
        (plan_id,) = require_texts(record.members, "plan_id")
        state.withdrawn[plan_id] = _text_or_none(record.detail.get("status")) or "REVOKED"


def _apply_carried_restrictions(state: AuditState, record: Record) -> None:
    """Apply the part of a carried state that restricts; approvals and seals in it never count."""
    part = record.detail.get("standing") or {}
    restrictions = {name: part[name] for name in ("frozen", "locks", "withdrawn", "usage") if name in part}
    _apply_carried_state(state, restrictions, record.timestamp)


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _apply_call(state: AuditState, record: Record) -> None:
    _require_call(record)
    if record.tool_name == "begin_session":
        _apply_begin(state, record, is_followed=True)
        return
    ok = record.outcome == "ok"
    intent = state.intents.pop(record.request_id or "", None)
    if intent is not None and not ok:
        _charge(state, intent, -1)
    _apply_session_call(state, record, ok=ok)
    if ok and record.tool_name == "write_report":
        state.reports = [*state.reports, record.timestamp][-MAX_REPORTS_PER_DAY:]
        if record.detail.get("unlocked"):
            (role,) = require_texts(record.members, "role")
            state.locks.pop(role, None)
            state.released[role] = [*state.released.get(role, ()), record.timestamp][-_MAX_RELEASES_KEPT:]


def _apply_session_call(state: AuditState, record: Record, *, ok: bool) -> None:
    session = state.sessions.get(record.session_id or "")
    if session is not None:
        changes = record.changes if ok else ()
        state.sessions[session.session_id] = session.with_call(record.timestamp, len(changes), refused=not ok)
        if changes:
            state.changed.setdefault(session.session_id, []).append(record.seq)
    if not ok:
        _apply_refusal(state, record)
    elif record.tool_name == "end_session" and session is not None:
        _forget_session(state, session.session_id)


def _require_call(record: Record) -> None:
    require_members(record)
    datetime.fromisoformat(record.timestamp)  # a session's expiry is computed from it
    if record.tool_name == "write_report":
        require_texts(record.members, "role")


def _apply_begin(state: AuditState, record: Record, *, is_followed: bool) -> None:
    """Note the state directory that a session was recorded from; begin the session if it is one to follow."""
    state_id = record.detail.get("state")
    if isinstance(state_id, str) and state_id not in state.states and len(state.states) < _MAX_STATES_KEPT:
        state.states = [*state.states, state_id[:_MAX_STATE_ID]]
    if is_followed and record.outcome == "ok":
        session_id, role, workspace_root = require_texts(record.members, "session_id", "role", "workspace_root")
        state.sessions[session_id] = Session(
            session_id=session_id,
            role=role,
            workspace_root=workspace_root,
            begun_at=record.timestamp,
            last_call_at=record.timestamp,
            client=record.client,
            calls=1,
            principal=record.principal,
            live=_text_or_none(record.detail.get("live")),
        )


def _apply_refusal(state: AuditState, record: Record) -> None:
    if record.error_code is None or record.error_code not in error_codes.SYSTEM_ERROR_CODES:
        return
    asked_for_change = is_change_attempt(record.tool_name, record.arguments)
    if not is_locking_refusal(record.error_code, record.invariant_id, record.cause, asked_for_change=asked_for_change):
        return
    if record.plan_id:
        state.usage.setdefault(record.plan_id, PlanUsage()).refusals += 1
    if record.role and record.role not in state.locks:
        state.locks[record.role] = RoleLock(
            role=record.role,
            error_code=record.error_code,
            session_id=record.session_id,
            request_id=record.request_id,
            seq=record.seq,
            at=record.timestamp,
        )


def _apply_intent(state: AuditState, record: Record) -> None:
    require_members(record)
    (request_id,) = require_texts(record.members, "request_id")
    intent = extract_intent(record)
    _charge(state, intent, 1)
    state.intents[request_id] = intent


def _charge(state: AuditState, intent: Record, sign: int) -> None:
    """Charge an intent to its plan's limits (`sign` 1), or refund it because it was not carried out (`sign` -1)."""
    if intent.plan_id and not intent.detail.get("unlimited"):
        state.usage.setdefault(intent.plan_id, PlanUsage()).charge(intent.changes, sign)


def _apply_plan(state: AuditState, record: Record) -> None:
    if is_late_count(record):
        return  # other bytes may have been approved since
    require_members(record)
    plan_id, plan_hash = require_texts(record.members, "plan_id", "plan_hash")
    state.seals[plan_id] = PlanSeal(
        plan_hash=plan_hash,
        how=_text_or_none(record.detail.get("how")) or "edited",
        approved_by=_text_or_none(record.detail.get("approved_by")),
        seq=record.seq,
    )


def _apply_recovery(state: AuditState, record: Record) -> None:
    require_members(record)
    intent = state.intents.pop(record.request_id or "", None)
    result = record.detail.get("result")
    if intent is not None and result in ("not_applied", "taken_back"):
        _charge(state, intent, -1)
    _restrict_by_recovery(state, record)
    if result == "applied" and record.changes and record.session_id in state.sessions:
        state.changed.setdefault(record.session_id, []).append(record.seq)


def _apply_decision(state: AuditState, record: Record) -> None:
    action = record.detail.get("action")
    if action == "freeze":
        state.frozen = merge_freezes(state.frozen, parse_freeze(record.detail, record.timestamp))
    require_members(record)
    _end_sessions(state, revoked_principal(record))
    if action == "thaw":
        state.frozen = None
    elif action == "unlock":
        for role in [record.role] if record.role else ROLES:
            state.locks.pop(role, None)
    elif action == "accept":
        _apply_carried_state(state, record.detail.get("standing") or {}, record.timestamp)
    elif action in _PLAN_DECISIONS:
        plan_id, plan_hash = require_texts(record.members, "plan_id", "plan_hash")
        state.approvals[plan_id] = plan_hash
        state.withdrawn.pop(plan_id, None)
        if action != "approve":
            state.withdrawn[plan_id] = action
    state.intents.pop(record.request_id or "", None)


def revoked_principal(record: Record) -> str | None:
    """The principal whose token this decision of a person ended; None for any other decision."""
    return _text_or_none(record.detail.get("token")) if record.detail.get("action") == "revoke_token" else None


def _end_sessions(state: AuditState, principal: str | None) -> None:
    ended = [key for key, session in state.sessions.items() if principal and session.principal == principal]
    for session_id in ended:
        _forget_session(state, session_id)


def _forget_session(state: AuditState, session_id: str) -> None:
    del state.sessions[session_id]
    state.changed.pop(session_id, None)


def _apply_carried_state(state: AuditState, part: Mapping[str, Any], at: str) -> None:
    """Apply one part of `carry_over.split`."""
    # A process that followed the old log applies it too: merge with what is known, never replace it by less.
    if part.get("frozen"):
        state.frozen = merge_freezes(state.frozen, parse_freeze(part["frozen"], at))
    require_carried_state(part)
    locks = {lock["role"]: RoleLock(**lock) for lock in part.get("locks", ())}
    seals = {piece["plan_id"]: PlanSeal(**piece["seal"]) for piece in part.get("seals", ())}
    usages = [
        (piece["plan_id"], PlanUsage(**{**piece["use"], "files": dict(piece["use"]["files"])}))
        for piece in part.get("usage", ())
    ]
    state.locks.update(locks)
    state.seals.update(seals)
    state.approvals.update({piece["plan_id"]: piece["plan_hash"] for piece in part.get("approvals", ())})
    state.withdrawn.update({piece["plan_id"]: piece["action"] for piece in part.get("withdrawn", ())})
    for piece in part.get("intents", ()):
        known_part = state.intents.get(piece["request_id"])
        before = known_part.changes[: piece["at"]] if known_part else ()
        state.intents[piece["request_id"]] = Record(
            {**piece["intent"], "changes": [*before, *piece["intent"]["changes"]]}
        )
    for piece in part.get("released", ()):
        known = state.released.get(piece["role"], ())
        state.released[piece["role"]] = sorted({*known, *piece["at"]})[-_MAX_RELEASES_KEPT:]
    for piece in part.get("reports", ()):
        state.reports = merge_times(state.reports, piece["at"])[-MAX_REPORTS_PER_DAY:]
    for plan_id, usage in usages:
        state.usage[plan_id] = combine_usage(state.usage.get(plan_id, PlanUsage()), usage, max)


_HANDLERS: Mapping[str, Callable[[AuditState, Record], None]] = {
    "call": _apply_call,
    "intent": _apply_intent,
    "plan": _apply_plan,
    "recovery": _apply_recovery,
    "person": _apply_decision,
}
