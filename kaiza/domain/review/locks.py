"""Locked spans of roles, from the refusal that locked to the report or the person that released."""

import math
from collections.abc import Sequence
from dataclasses import replace

from kaiza.domain.review.actors import action_of, actor_of_role, detail_of, is_locking
from kaiza.domain.review.evidence import Record
from kaiza.domain.review.timeline import LockedSpan
from kaiza.domain.roles import ROLES


def find_locks(selected: Sequence[Record], context: Sequence[Record]) -> tuple[LockedSpan, ...]:
    """Locks that selected refusals caused, and those of other sessions in their time."""
    own = {record["seq"] for record in selected}
    spans: list[LockedSpan] = []
    open_spans: dict[str, int] = {}
    for record in sorted([*selected, *context], key=lambda record: int(record["seq"])):
        role = record["role"]
        if is_locking(record) and role and role not in open_spans:
            open_spans[role] = len(spans)
            other = None if record["seq"] in own else str(record["session_id"])
            at = str(record["timestamp"])
            spans.append(LockedSpan(actor_of_role(role), role, at, record["seq"], other_session=other))
        for released in _released_roles(record):
            if released in open_spans:
                number = open_spans.pop(released)
                spans[number] = _release(spans[number], record)
    return tuple(span for span in spans if span.other_session is None or _was_met(span, selected))


def _was_met(span: LockedSpan, selected: Sequence[Record]) -> bool:
    """Whether the role was locked at some time between its first and its last selected call."""
    calls = [record["seq"] for record in selected if record["role"] == span.role]
    return bool(calls) and span.locked_by < max(calls) and (span.released_by or math.inf) > min(calls)


def _released_roles(record: Record) -> Sequence[str]:
    if record["tool_name"] == "write_report" and record["outcome"] == "ok":
        return [record["role"]] if detail_of(record).get("unlocked") is True else []
    if action_of(record) == "unlock":
        return [record["role"]] if record["role"] else ROLES
    return []


def _release(span: LockedSpan, record: Record) -> LockedSpan:
    return replace(
        span,
        to=str(record["timestamp"]),
        released_by=record["seq"],
        release="person" if record["kind"] == "person" else "report",
    )
