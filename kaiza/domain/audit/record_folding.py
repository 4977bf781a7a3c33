"""Fold of audit records into facts: one function for each kind of record.

Nothing here is decided; a fact is true because a record says so, and the same records give the same facts.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from kaiza.domain import error_codes
from kaiza.domain.audit.projection import (
    ROLES,
    AuditState,
    Freeze,
    PlanSeal,
    RoleLock,
    Session,
    is_change_attempt,
    is_locking_refusal,
    merge_times,
)
from kaiza.domain.audit.record import require_carried_state, require_intent, require_texts
from kaiza.domain.caps import MAX_REPORTS_PER_DAY
from kaiza.domain.plans.plan import PlanUsage, max_usage

_MAX_RELEASES_KEPT = 10
_PLAN_DECISIONS = ("approve", "reject", "revoke")


def apply_record(facts: AuditState, record: Mapping[str, Any]) -> None:
    """Take in the next record of the log; one that is not shaped as Kaiza writes them changes nothing.

    The chain says nothing about a record's members, and a log that came with a clone may hold any.
    """
    with suppress(TypeError, KeyError, AttributeError, ValueError):
        _HANDLERS.get(record.get("kind", ""), _ignore_record)(facts, record)


def _text_or_none(told: object) -> str | None:
    return told if isinstance(told, str) else None


def _ignore_record(_facts: AuditState, _record: Mapping[str, Any]) -> None:
    """A kind of record that changes no fact."""


def _apply_call(facts: AuditState, record: Mapping[str, Any]) -> None:
    ok = record["outcome"] == "ok"
    datetime.fromisoformat(record["timestamp"])  # sessions end by it
    intent = facts.intents.pop(record["request_id"], None)
    if intent is not None and not ok:
        _charge(facts, intent, -1)
    if record["tool_name"] == "begin_session":
        if ok:
            _begin_session(facts, record)
        return
    session = facts.sessions.get(record["session_id"] or "")
    if session is not None:
        _count_call(facts, session, record, ok=ok)
    if not ok:
        _apply_refusal(facts, record)
    elif record["tool_name"] == "end_session" and session is not None:
        del facts.sessions[session.session_id]
        facts.changed.pop(session.session_id, None)
    elif record["tool_name"] == "write_report":
        _apply_report(facts, record)


def _begin_session(facts: AuditState, record: Mapping[str, Any]) -> None:
    require_texts(record, "session_id", "role", "workspace_root")
    require_texts(record, "client", or_null=True)
    facts.sessions[record["session_id"]] = Session(
        session_id=record["session_id"],
        role=record["role"],
        workspace_root=record["workspace_root"],
        begun_at=record["timestamp"],
        last_call_at=record["timestamp"],
        client=record["client"],
        calls=1,
    )


def _count_call(facts: AuditState, session: Session, record: Mapping[str, Any], *, ok: bool) -> None:
    datetime.fromisoformat(record["timestamp"])
    changes = record["changes"] if ok and record["changes"] else ()
    facts.sessions[session.session_id] = session.with_call(record["timestamp"], len(changes), refused=not ok)
    if changes:
        facts.changed.setdefault(session.session_id, []).append(record["seq"])


def _apply_refusal(facts: AuditState, record: Mapping[str, Any]) -> None:
    if record["error_code"] not in error_codes.REGISTRY:
        return
    meant = is_change_attempt(record["tool_name"], record["arguments"])
    if not is_locking_refusal(record["error_code"], record["invariant_id"], asked_for_change=meant):
        return
    require_texts(record, "plan_id", "role", "session_id", "request_id", or_null=True)
    if record["plan_id"]:
        facts.usage.setdefault(record["plan_id"], PlanUsage()).refusals += 1
    role = record["role"]
    if role and role not in facts.locks:
        facts.locks[role] = RoleLock(
            role=role,
            error_code=record["error_code"],
            session_id=record["session_id"],
            request_id=record["request_id"],
            seq=record["seq"],
            at=record["timestamp"],
        )


def _apply_report(facts: AuditState, record: Mapping[str, Any]) -> None:
    require_texts(record, "role")
    facts.reports = [*facts.reports, record["timestamp"]][-MAX_REPORTS_PER_DAY:]
    if (record["detail"] or {}).get("unlocked"):
        facts.locks.pop(record["role"], None)
        facts.released[record["role"]] = [*facts.released.get(record["role"], ()), record["timestamp"]][
            -_MAX_RELEASES_KEPT:
        ]


def _apply_intent(facts: AuditState, record: Mapping[str, Any]) -> None:
    intent = {
        "seq": record["seq"],
        "session_id": record["session_id"],
        "tool_name": record["tool_name"],
        "plan_id": record["plan_id"],
        "plan_hash": record["plan_hash"],
        "detail": record["detail"],
        "changes": record["changes"] or [],
    }
    require_texts(record, "request_id")
    require_intent(intent)
    _charge(facts, intent, 1)
    facts.intents[record["request_id"]] = intent


def _charge(facts: AuditState, intent: Mapping[str, Any], sign: int) -> None:
    """Count an intent against its plan's limits, or take it back because nothing came of it."""
    if intent["plan_id"] and not (intent["detail"] or {}).get("unlimited"):
        facts.usage.setdefault(intent["plan_id"], PlanUsage()).charge(intent["changes"] or (), sign)


def _apply_plan(facts: AuditState, record: Mapping[str, Any]) -> None:
    require_texts(record, "plan_id", "plan_hash")
    detail = record["detail"] or {}
    facts.seals[record["plan_id"]] = PlanSeal(
        plan_hash=record["plan_hash"],
        how=_text_or_none(detail.get("how")) or "edited",
        approved_by=_text_or_none(detail.get("approved_by")),
        seq=record["seq"],
    )


def _apply_recovery(facts: AuditState, record: Mapping[str, Any]) -> None:
    intent = facts.intents.pop(record["request_id"], None)
    result = (record["detail"] or {}).get("result")
    if intent is not None and result in ("not_applied", "taken_back"):
        _charge(facts, intent, -1)
    if result == "applied" and record["changes"] and record["session_id"] in facts.sessions:
        facts.changed.setdefault(record["session_id"], []).append(record["seq"])


def _apply_decision(facts: AuditState, record: Mapping[str, Any]) -> None:
    detail = record["detail"] or {}
    action = detail.get("action")
    at = _text_or_none(record["timestamp"]) or ""
    if action == "freeze":
        facts.frozen = _parse_freeze(detail, at)
    elif action == "thaw":
        facts.frozen = None
    elif action == "unlock":
        for role in [record["role"]] if record["role"] else ROLES:
            facts.locks.pop(role, None)
    elif action == "accept":
        _apply_carried_state(facts, detail.get("standing") or {}, at)
    elif action in _PLAN_DECISIONS:
        require_texts(record, "plan_id", "plan_hash")
        facts.approvals[record["plan_id"]] = record["plan_hash"]
        facts.withdrawn.pop(record["plan_id"], None)
        if action != "approve":
            facts.withdrawn[record["plan_id"]] = action
    facts.intents.pop(record["request_id"], None)


def _parse_freeze(told: Mapping[str, Any], at: str) -> Freeze:
    """A freeze binds, whatever its reason is."""
    return Freeze(
        _text_or_none(told.get("reason")) or "", _text_or_none(told.get("person")), _text_or_none(told.get("at")) or at
    )


def _apply_carried_state(facts: AuditState, told: Mapping[str, Any], at: str) -> None:
    """Take in a part of what `carried.parts` made of the log before this one; an older Kaiza named only the first two.

    A process that knew the old log is told it too, so nothing here loosens what is known.
    """
    if told.get("frozen"):
        facts.frozen = _parse_freeze(told["frozen"], at)
    require_carried_state(told)
    facts.locks.update({one["role"]: RoleLock(**one) for one in told.get("locks", ())})
    facts.approvals.update({one["plan_id"]: one["plan_hash"] for one in told.get("approvals", ())})
    facts.withdrawn.update({one["plan_id"]: one["action"] for one in told.get("withdrawn", ())})
    for one in told.get("intents", ()):
        before = facts.intents.get(one["request_id"], {"changes": []})["changes"][: one["at"]]
        facts.intents[one["request_id"]] = {**one["intent"], "changes": [*before, *one["intent"]["changes"]]}
    for one in told.get("seals", ()):
        facts.seals[one["plan_id"]] = PlanSeal(**one["seal"])
    for one in told.get("released", ()):
        known = facts.released.get(one["role"], ())
        facts.released[one["role"]] = sorted({*known, *one["at"]})[-_MAX_RELEASES_KEPT:]
    for one in told.get("reports", ()):
        facts.reports = merge_times(facts.reports, one["at"])[-MAX_REPORTS_PER_DAY:]
    for one in told.get("usage", ()):
        use = PlanUsage(**{**one["use"], "files": dict(one["use"]["files"])})
        facts.usage[one["plan_id"]] = max_usage(facts.usage.get(one["plan_id"], PlanUsage()), use)


_HANDLERS = {
    "call": _apply_call,
    "intent": _apply_intent,
    "plan": _apply_plan,
    "recovery": _apply_recovery,
    "person": _apply_decision,
}
