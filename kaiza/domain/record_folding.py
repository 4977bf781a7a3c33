"""Fold of audit records into facts: one function for each kind of record.

Nothing here is decided; a fact is true because a record says so, and the same records give the same facts.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from kaiza.domain import codes
from kaiza.domain.caps import REPORTS_A_DAY
from kaiza.domain.plan_usage import Usage, higher
from kaiza.domain.record_shape import require_intent, require_standing, require_texts
from kaiza.domain.session import ROLES, Facts, Freeze, Lock, Seal, Session, asked_for_change, either, locks

_RELEASES_KEPT = 10
_WORDS_ON_PLANS = ("approve", "reject", "revoke")


def apply_record(facts: Facts, record: Mapping[str, Any]) -> None:
    """Take in the next record of the log; one that is not shaped as Kaiza writes them changes nothing.

    The chain says nothing about a record's members, and a log that came with a clone may hold any.
    """
    with suppress(TypeError, KeyError, AttributeError, ValueError):
        _BY_KIND.get(record.get("kind", ""), _nothing)(facts, record)


def _text(told: object) -> str | None:
    return told if isinstance(told, str) else None


def _nothing(_facts: Facts, _record: Mapping[str, Any]) -> None:
    """A kind of record that changes no fact."""


def _call(facts: Facts, record: Mapping[str, Any]) -> None:
    ok = record["outcome"] == "ok"
    datetime.fromisoformat(record["timestamp"])  # sessions end by it
    intent = facts.intents.pop(record["request_id"], None)
    if intent is not None and not ok:
        _charge(facts, intent, -1)
    if record["tool_name"] == "begin_session":
        if ok:
            _begin(facts, record)
        return
    session = facts.sessions.get(record["session_id"] or "")
    if session is not None:
        _count(facts, session, record, ok=ok)
    if not ok:
        _refused(facts, record)
    elif record["tool_name"] == "end_session" and session is not None:
        del facts.sessions[session.session_id]
        facts.changed.pop(session.session_id, None)
    elif record["tool_name"] == "write_report":
        _reported(facts, record)


def _begin(facts: Facts, record: Mapping[str, Any]) -> None:
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


def _count(facts: Facts, session: Session, record: Mapping[str, Any], *, ok: bool) -> None:
    datetime.fromisoformat(record["timestamp"])
    changes = record["changes"] if ok and record["changes"] else ()
    facts.sessions[session.session_id] = session.after(record["timestamp"], len(changes), refused=not ok)
    if changes:
        facts.changed.setdefault(session.session_id, []).append(record["seq"])


def _refused(facts: Facts, record: Mapping[str, Any]) -> None:
    if record["error_code"] not in codes.REGISTRY:
        return
    meant = asked_for_change(record["tool_name"], record["arguments"])
    if not locks(record["error_code"], record["invariant_id"], asked_for_change=meant):
        return
    require_texts(record, "plan_id", "role", "session_id", "request_id", or_null=True)
    if record["plan_id"]:
        facts.usage.setdefault(record["plan_id"], Usage()).refusals += 1
    role = record["role"]
    if role and role not in facts.locks:
        facts.locks[role] = Lock(
            role=role,
            error_code=record["error_code"],
            session_id=record["session_id"],
            request_id=record["request_id"],
            seq=record["seq"],
            at=record["timestamp"],
        )


def _reported(facts: Facts, record: Mapping[str, Any]) -> None:
    require_texts(record, "role")
    facts.reports = [*facts.reports, record["timestamp"]][-REPORTS_A_DAY:]
    if (record["detail"] or {}).get("unlocked"):
        facts.locks.pop(record["role"], None)
        facts.released[record["role"]] = [*facts.released.get(record["role"], ()), record["timestamp"]][
            -_RELEASES_KEPT:
        ]


def _intent(facts: Facts, record: Mapping[str, Any]) -> None:
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


def _charge(facts: Facts, intent: Mapping[str, Any], sign: int) -> None:
    """Count an intent against its plan's limits, or take it back because nothing came of it."""
    if intent["plan_id"] and not (intent["detail"] or {}).get("unlimited"):
        facts.usage.setdefault(intent["plan_id"], Usage()).charge(intent["changes"] or (), sign)


def _plan(facts: Facts, record: Mapping[str, Any]) -> None:
    require_texts(record, "plan_id", "plan_hash")
    detail = record["detail"] or {}
    facts.seals[record["plan_id"]] = Seal(
        plan_hash=record["plan_hash"],
        how=_text(detail.get("how")) or "edited",
        approved_by=_text(detail.get("approved_by")),
        seq=record["seq"],
    )


def _recovery(facts: Facts, record: Mapping[str, Any]) -> None:
    intent = facts.intents.pop(record["request_id"], None)
    result = (record["detail"] or {}).get("result")
    if intent is not None and result in ("not_applied", "taken_back"):
        _charge(facts, intent, -1)
    if result == "applied" and record["changes"] and record["session_id"] in facts.sessions:
        facts.changed.setdefault(record["session_id"], []).append(record["seq"])


def _person(facts: Facts, record: Mapping[str, Any]) -> None:
    detail = record["detail"] or {}
    action = detail.get("action")
    at = _text(record["timestamp"]) or ""
    if action == "freeze":
        facts.frozen = _freeze(detail, at)
    elif action == "thaw":
        facts.frozen = None
    elif action == "unlock":
        for role in [record["role"]] if record["role"] else ROLES:
            facts.locks.pop(role, None)
    elif action == "accept":
        _carried_over(facts, detail.get("standing") or {}, at)
    elif action in _WORDS_ON_PLANS:
        require_texts(record, "plan_id", "plan_hash")
        facts.approvals[record["plan_id"]] = record["plan_hash"]
        facts.withdrawn.pop(record["plan_id"], None)
        if action != "approve":
            facts.withdrawn[record["plan_id"]] = action
    facts.intents.pop(record["request_id"], None)


def _freeze(told: Mapping[str, Any], at: str) -> Freeze:
    """A freeze binds, whatever its reason is."""
    return Freeze(_text(told.get("reason")) or "", _text(told.get("person")), _text(told.get("at")) or at)


def _carried_over(facts: Facts, told: Mapping[str, Any], at: str) -> None:
    """Take in a part of what `carried.parts` made of the log before this one; an older Kaiza named only the first two.

    A process that knew the old log is told it too, so nothing here loosens what is known.
    """
    if told.get("frozen"):
        facts.frozen = _freeze(told["frozen"], at)
    require_standing(told)
    facts.locks.update({one["role"]: Lock(**one) for one in told.get("locks", ())})
    facts.approvals.update({one["plan_id"]: one["plan_hash"] for one in told.get("approvals", ())})
    facts.withdrawn.update({one["plan_id"]: one["action"] for one in told.get("withdrawn", ())})
    for one in told.get("intents", ()):
        before = facts.intents.get(one["request_id"], {"changes": []})["changes"][: one["at"]]
        facts.intents[one["request_id"]] = {**one["intent"], "changes": [*before, *one["intent"]["changes"]]}
    for one in told.get("seals", ()):
        facts.seals[one["plan_id"]] = Seal(**one["seal"])
    for one in told.get("released", ()):
        known = facts.released.get(one["role"], ())
        facts.released[one["role"]] = sorted({*known, *one["at"]})[-_RELEASES_KEPT:]
    for one in told.get("reports", ()):
        facts.reports = either(facts.reports, one["at"])[-REPORTS_A_DAY:]
    for one in told.get("usage", ()):
        use = Usage(**{**one["use"], "files": dict(one["use"]["files"])})
        facts.usage[one["plan_id"]] = higher(facts.usage.get(one["plan_id"], Usage()), use)


_BY_KIND = {"call": _call, "intent": _intent, "plan": _plan, "recovery": _recovery, "person": _person}
