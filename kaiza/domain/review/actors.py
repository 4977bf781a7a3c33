"""Who acted in a record, and what kind of act it was."""

from collections.abc import Mapping
from typing import Any

from kaiza.domain import error_codes
from kaiza.domain.audit.projection import is_change_attempt, is_locking_refusal
from kaiza.domain.audit.record import Record
from kaiza.domain.review.timeline import Actor
from kaiza.domain.roles import PLANNER


def actor_of(record: Record) -> Actor:
    """The lane of a record: a person, or the role that called."""
    if record["kind"] == "person":
        return "person"
    return actor_of_role(record["role"])


def actor_of_role(role: object) -> Actor:
    """The lane of a role; calls without a role are drawn with the executor's."""
    return "planner" if role == PLANNER else "executor"


def is_refusal(record: Record) -> bool:
    """Whether the record is a refused call."""
    return bool(record["kind"] == "call" and record["outcome"] == "error")


def is_locking(record: Record) -> bool:
    """Whether the record is a refusal that locks the role."""
    if not is_refusal(record) or record["error_code"] not in error_codes.SYSTEM_ERROR_CODES:
        return False
    asked = is_change_attempt(record["tool_name"], record["arguments"])
    kind = (record["error_code"], record["invariant_id"], record["cause"])
    return is_locking_refusal(*kind, asked_for_change=asked)


def detail_of(record: Record) -> Mapping[str, Any]:
    """The record's detail; empty where there is none."""
    detail = record["detail"]
    return detail if isinstance(detail, Mapping) else {}


def action_of(record: Record) -> str | None:
    """What a person did; None for other records."""
    action = detail_of(record).get("action")
    return action if record["kind"] == "person" and isinstance(action, str) else None
