"""Applies audit records to the projected state, one function for each kind of record.

Deterministic: the same records give the same state. Rules are checked elsewhere.
"""

from collections.abc import Mapping
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
from kaiza.domain.audit.record import Record, require_carried_state, require_intent, require_members, require_texts
from kaiza.domain.audit.recorded_names import restore_names
from kaiza.domain.caps import MAX_REPORTS_PER_DAY
from kaiza.domain.plans.plan import PlanUsage, combine_usage
from kaiza.domain.roles import ROLES

_MAX_RELEASES_KEPT = 10
_MAX_STATES_KEPT = 8
_MAX_STATE_ID = 64
_INTENT_MEMBERS = ("seq", "session_id", "tool_name", "plan_id", "plan_hash", "detail", "changes")
_PLAN_DECISIONS = ("approve", "reject", "revoke")


def apply_record(state: AuditState, record: Record) -> None:
    """Apply the next record of the log, or nothing of it if a member has the wrong type; but a freeze always counts."""
    _note_first(state, record)
    # A valid chain says nothing about a record's members: a log that came with a clone may contain anything.
    with suppress(TypeError, KeyError, AttributeError, ValueError):
        _HANDLERS.get(record.get("kind", ""), _ignore_record)(state, restore_names(record))


def apply_restrictions(state: AuditState, record: Record, own_state: str | None) -> None:
    """Apply a record that may have been written elsewhere: only what restricts, and sessions of this machine.

    `own_state` is the id of this machine's state directory, which its `begin_session` records carry.
    """
    _note_first(state, record)
    with suppress(TypeError, KeyError, AttributeError, ValueError):
        record = restore_names(record)
        if record["kind"] == "call":
            _restrict_by_call(state, record, own_state)
        elif record["kind"] == "person":
            _restrict_by_decision(state, record)
        elif record["kind"] == "recovery":
            _restrict_by_recovery(state, record)


def _note_first(state: AuditState, record: Record) -> None:
    if record.get("seq") == 1:
        state.is_deterministic = is_deterministic(record)


def _restrict_by_call(state: AuditState, record: Record, own_state: str | None) -> None:
    _require_call(record)
    ok = record["outcome"] == "ok"
    if record["tool_name"] == "begin_session":
        _note_state(state, record)
        if ok and own_state is not None and (record["detail"] or {}).get("state") == own_state:
            _begin_session(state, record)
        return
    _apply_session_call(state, record, ok=ok)
    if ok and record["changes"]:
        # Its intent was written elsewhere too. The outcome alone charges, so that a refund is never needed.
        intent = {name: record[name] for name in _INTENT_MEMBERS}
        require_intent(intent)
        _charge(state, intent, 1)


def _restrict_by_decision(state: AuditState, record: Record) -> None:
    detail = record["detail"] or {}
    action = detail.get("action")
    if action == "freeze":
        state.frozen = merge_freezes(state.frozen, parse_freeze(detail, _text_or_none(record["timestamp"]) or ""))
    elif action == "accept":
        _apply_carried_restrictions(state, record)
    elif action in ("reject", "revoke"):
        require_texts(record, "plan_id")
        state.withdrawn[record["plan_id"]] = action
    _end_sessions(state, revoked_principal(record))


def _restrict_by_recovery(state: AuditState, record: Record) -> None:
    detail = record["detail"] or {}
    if detail.get("result") == "state_retired":
        _apply_carried_restrictions(state, record)
    elif detail.get("result") == WITHDRAWAL:
        require_texts(record, "plan_id")
        state.withdrawn[record["plan_id"]] = _text_or_none(detail.get("status")) or "REVOKED"


def _apply_carried_restrictions(state: AuditState, record: Record) -> None:
    """Apply the part of a carried state that restricts; approvals and seals in it never count."""
    part = (record["detail"] or {}).get("standing") or {}
    restrictions = {name: part[name] for name in ("frozen", "locks", "withdrawn", "usage") if name in part}
    _apply_carried_state(state, restrictions, _text_or_none(record["timestamp"]) or "")


def _note_state(state: AuditState, record: Record) -> None:
    """Note the state directory that a session was recorded from."""
    state_id = (record["detail"] or {}).get("state")
    if isinstance(state_id, str) and state_id not in state.states and len(state.states) < _MAX_STATES_KEPT:
        state.states = [*state.states, state_id[:_MAX_STATE_ID]]


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _ignore_record(_state: AuditState, _record: Record) -> None:
    pass


def _apply_call(state: AuditState, record: Record) -> None:
    _require_call(record)
    ok = record["outcome"] == "ok"
    if record["tool_name"] == "begin_session":
        _note_state(state, record)
        if ok:
            _begin_session(state, record)
        return
    intent = state.intents.pop(record["request_id"], None)
    if intent is not None and not ok:
        _charge(state, intent, -1)
    _apply_session_call(state, record, ok=ok)
    if ok and record["tool_name"] == "write_report":
        _apply_report(state, record)


def _apply_session_call(state: AuditState, record: Record, *, ok: bool) -> None:
    session = state.sessions.get(record["session_id"] or "")
    if session is not None:
        _count_call(state, session, record, ok=ok)
    if not ok:
        _apply_refusal(state, record)
    elif record["tool_name"] == "end_session" and session is not None:
        _forget_session(state, session.session_id)


def _require_call(record: Record) -> None:
    require_members(record)
    datetime.fromisoformat(record["timestamp"])  # a session's expiry is computed from it
    if record["tool_name"] == "write_report":
        require_texts(record, "role")


def _begin_session(state: AuditState, record: Record) -> None:
    require_texts(record, "session_id", "role", "workspace_root")
    require_texts(record, "client", or_null=True)
    state.sessions[record["session_id"]] = Session(
        session_id=record["session_id"],
        role=record["role"],
        workspace_root=record["workspace_root"],
        begun_at=record["timestamp"],
        last_call_at=record["timestamp"],
        client=record["client"],
        calls=1,
        principal=record.get("principal"),
        live=_text_or_none((record["detail"] or {}).get("live")),
    )


def _count_call(state: AuditState, session: Session, record: Record, *, ok: bool) -> None:
    changes = record["changes"] if ok and record["changes"] else ()
    state.sessions[session.session_id] = session.with_call(record["timestamp"], len(changes), refused=not ok)
    if changes:
        state.changed.setdefault(session.session_id, []).append(record["seq"])


def _apply_refusal(state: AuditState, record: Record) -> None:
    if record["error_code"] not in error_codes.SYSTEM_ERROR_CODES:
        return
    asked_for_change = is_change_attempt(record["tool_name"], record["arguments"])
    kind = (record["error_code"], record["invariant_id"], record.get("cause"))
    if not is_locking_refusal(*kind, asked_for_change=asked_for_change):
        return
    if record["plan_id"]:
        state.usage.setdefault(record["plan_id"], PlanUsage()).refusals += 1
    role = record["role"]
    if role and role not in state.locks:
        state.locks[role] = RoleLock(
            role=role,
            error_code=record["error_code"],
            session_id=record["session_id"],
            request_id=record["request_id"],
            seq=record["seq"],
            at=record["timestamp"],
        )


def _apply_report(state: AuditState, record: Record) -> None:
    state.reports = [*state.reports, record["timestamp"]][-MAX_REPORTS_PER_DAY:]
    if (record["detail"] or {}).get("unlocked"):
        state.locks.pop(record["role"], None)
        times = [*state.released.get(record["role"], ()), record["timestamp"]]
        state.released[record["role"]] = times[-_MAX_RELEASES_KEPT:]


def _apply_intent(state: AuditState, record: Record) -> None:
    require_members(record)
    names = ("seq", "session_id", "tool_name", "plan_id", "plan_hash", "detail")
    intent = {**{name: record[name] for name in names}, "changes": record["changes"] or []}
    require_texts(record, "request_id")
    require_intent(intent)
    _charge(state, intent, 1)
    state.intents[record["request_id"]] = intent


def _charge(state: AuditState, intent: Mapping[str, Any], sign: int) -> None:
    """Charge an intent to its plan's limits (`sign` 1), or refund it because it was not carried out (`sign` -1)."""
    if intent["plan_id"] and not (intent["detail"] or {}).get("unlimited"):
        state.usage.setdefault(intent["plan_id"], PlanUsage()).charge(intent["changes"] or (), sign)


def _apply_plan(state: AuditState, record: Record) -> None:
    if is_late_count(record):
        return  # other bytes may have been approved since
    require_members(record)
    require_texts(record, "plan_id", "plan_hash")
    detail = record["detail"] or {}
    state.seals[record["plan_id"]] = PlanSeal(
        plan_hash=record["plan_hash"],
        how=_text_or_none(detail.get("how")) or "edited",
        approved_by=_text_or_none(detail.get("approved_by")),
        seq=record["seq"],
    )


def _apply_recovery(state: AuditState, record: Record) -> None:
    require_members(record)
    intent = state.intents.pop(record["request_id"], None)
    result = (record["detail"] or {}).get("result")
    if intent is not None and result in ("not_applied", "taken_back"):
        _charge(state, intent, -1)
    _restrict_by_recovery(state, record)
    if result == "applied" and record["changes"] and record["session_id"] in state.sessions:
        state.changed.setdefault(record["session_id"], []).append(record["seq"])


def _apply_decision(state: AuditState, record: Record) -> None:
    detail = record["detail"] or {}
    action = detail.get("action")
    at = _text_or_none(record["timestamp"]) or ""
    if action == "freeze":
        state.frozen = merge_freezes(state.frozen, parse_freeze(detail, at))
    require_members(record)
    _end_sessions(state, revoked_principal(record))
    if action == "thaw":
        state.frozen = None
    elif action == "unlock":
        for role in [record["role"]] if record["role"] else ROLES:
            state.locks.pop(role, None)
    elif action == "accept":
        _apply_carried_state(state, detail.get("standing") or {}, at)
    elif action in _PLAN_DECISIONS:
        require_texts(record, "plan_id", "plan_hash")
        state.approvals[record["plan_id"]] = record["plan_hash"]
        state.withdrawn.pop(record["plan_id"], None)
        if action != "approve":
            state.withdrawn[record["plan_id"]] = action
    state.intents.pop(record["request_id"], None)


def revoked_principal(record: Record) -> str | None:
    """The principal whose token this decision of a person ended; None for any other decision."""
    detail = record["detail"] or {}
    return _text_or_none(detail.get("token")) if detail.get("action") == "revoke_token" else None


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
    usages = [(piece["plan_id"], _parse_usage(piece["use"])) for piece in part.get("usage", ())]
    state.locks.update(locks)
    state.seals.update(seals)
    state.approvals.update({piece["plan_id"]: piece["plan_hash"] for piece in part.get("approvals", ())})
    state.withdrawn.update({piece["plan_id"]: piece["action"] for piece in part.get("withdrawn", ())})
    for piece in part.get("intents", ()):
        before = state.intents.get(piece["request_id"], {"changes": []})["changes"][: piece["at"]]
        state.intents[piece["request_id"]] = {**piece["intent"], "changes": [*before, *piece["intent"]["changes"]]}
    for piece in part.get("released", ()):
        known = state.released.get(piece["role"], ())
        state.released[piece["role"]] = sorted({*known, *piece["at"]})[-_MAX_RELEASES_KEPT:]
    for piece in part.get("reports", ()):
        state.reports = merge_times(state.reports, piece["at"])[-MAX_REPORTS_PER_DAY:]
    for plan_id, usage in usages:
        state.usage[plan_id] = combine_usage(state.usage.get(plan_id, PlanUsage()), usage, max)


def _parse_usage(members: Mapping[str, Any]) -> PlanUsage:
    return PlanUsage(**{**members, "files": dict(members["files"])})


_HANDLERS = {
    "call": _apply_call,
    "intent": _apply_intent,
    "plan": _apply_plan,
    "recovery": _apply_recovery,
    "person": _apply_decision,
}
