"""Locked spans of roles, from the refusal that locked to the report or the person that released."""

from collections.abc import Sequence
from dataclasses import replace

from kaiza.domain.audit.projection import ROLES
from kaiza.domain.review.actors import action_of, actor_of_role, detail_of, is_locking
from kaiza.domain.review.evidence import Record
from kaiza.domain.review.timeline import LockedSpan


def find_locks(selected: Sequence[Record], context: Sequence[Record]) -> tuple[LockedSpan, ...]:
    """Locks that selected refusals caused; released by any record."""
    own = {record["seq"] for record in selected}
    spans: list[LockedSpan] = []
    open_spans: dict[str, int] = {}
    for record in sorted([*selected, *context], key=lambda record: int(record["seq"])):
        role = record["role"]
        if is_locking(record) and role and role not in open_spans and record["seq"] in own:
            open_spans[role] = len(spans)
            spans.append(LockedSpan(actor_of_role(role), role, str(record["timestamp"]), record["seq"]))
        for released in _released_roles(record):
            if released in open_spans:
                at = open_spans.pop(released)
                spans[at] = _release(spans[at], record)
    return tuple(spans)


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
