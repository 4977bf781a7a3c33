"""Timeline of the report: an event for each call, decision and recovery, and the spans in which a role was locked."""

import math
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Literal

from kaiza.domain.audit.inverse_changes import is_undo, took_effect
from kaiza.domain.audit.record import Record
from kaiza.domain.audit.undone_changes import undone_paths
from kaiza.domain.review.records import (
    action_of,
    actor_of,
    actor_of_role,
    is_locking,
    is_refusal,
    is_report,
    merge_records,
    named_paths,
)
from kaiza.domain.review.report import (
    APPROVAL_WORDS,
    EventKind,
    LockedSpan,
    PlanCard,
    Timeline,
    TimelineEvent,
    UngovernedReview,
)
from kaiza.domain.roles import ROLES

_KINDS_BY_TOOL: dict[str, EventKind] = {"save_plan": "draft", "write_report": "report"}


def build_timeline(
    selected: Sequence[Record],
    others: Sequence[Record],
    plans: Iterable[PlanCard],
    ungoverned: UngovernedReview,
    made_at: str,
) -> Timeline:
    """The timeline of the selected records. `others` explain them: decisions of people, later undos, reports."""
    times = [record.timestamp for record in selected]
    undone = {request_id for request_id, _ in undone_paths(list(filter(took_effect, merge_records(selected, others))))}
    events = [_event_of(record, undone) for record in selected if record.kind in ("call", "recovery")]
    for record in others:
        action = action_of(record)
        # An approval is drawn with its plan.
        if action is not None and action != "approve":
            events.append(_new_event("undo" if action == "undo" else "decision", record, action))
    events += [event for card in plans for event in _approval_events(card)]
    if ungoverned.count:
        since = ungoverned.compared_since or max(times, default=made_at)
        label = "1 file" if ungoverned.count == 1 else f"{ungoverned.count:,} files"
        # Nobody saw the change: all that is known is the time between the two looks at the files.
        events.append(TimelineEvent("outside", "outside", since, label, until=made_at))
    return Timeline(
        tuple(sorted(events, key=lambda event: (event.at, event.seq or 0))),
        _find_locks(selected, others),
        min(times, default=None),
        max(times, default=None),
    )


def _event_of(record: Record, undone: AbstractSet[str | None]) -> TimelineEvent:
    kind: EventKind
    if record.kind == "recovery":
        kind = "recovery"
    elif is_refusal(record):
        kind = "locking_refusal" if is_locking(record) else "refusal"
    elif not record.changes:
        kind = _KINDS_BY_TOOL.get(record.tool_name or "", "read")
    elif is_undo(record):
        kind = "undo"
    else:
        kind = "undone_change" if record.request_id in undone else "change"
    return _new_event(kind, record, record.tool_name or record.kind)


def _new_event(kind: EventKind, record: Record, label: str) -> TimelineEvent:
    return TimelineEvent(
        kind=kind,
        actor=actor_of(record),
        at=record.timestamp,
        label=label,
        seq=record.seq,
        path=next(iter(named_paths(record)), None),
        error_code=record.error_code,
    )


def _approval_events(card: PlanCard) -> Iterator[TimelineEvent]:
    if card.how is None:
        return
    label = "approval not proven" if card.how == "unproven" else f"approved {APPROVAL_WORDS[card.how].way}"
    if card.interval is not None:
        since = card.interval.after or card.interval.before
        yield TimelineEvent("approval", "person", since, label, card.sealed_seq, card.interval.before)
    elif card.approved_at is not None:
        yield TimelineEvent("approval", "person", card.approved_at, label, card.sealed_seq)


def _find_locks(selected: Sequence[Record], others: Sequence[Record]) -> tuple[LockedSpan, ...]:
    """Locks that selected refusals caused, and those of other sessions that the selected calls met."""
    own = {record.seq for record in selected}
    spans: list[LockedSpan] = []
    open_spans: dict[str, int] = {}
    for record in merge_records(selected, others):
        role, at = record.role, record.timestamp
        if is_locking(record) and role and role not in open_spans:
            open_spans[role] = len(spans)
            other = None if record.seq in own else str(record.session_id)
            spans.append(LockedSpan(actor_of_role(role), role, at, record.seq, other_session=other))
        for released in _released_roles(record):
            if released in open_spans:
                number = open_spans.pop(released)
                is_person = record.kind == "person"
                release: Literal["person", "report"] = "person" if is_person else "report"
                spans[number] = replace(spans[number], to=at, released_by=record.seq, release=release)
    return tuple(span for span in spans if span.other_session is None or _was_met(span, selected))


def _was_met(span: LockedSpan, selected: Sequence[Record]) -> bool:
    """Whether the role was locked at some time between its first and its last selected call."""
    calls = [record.seq for record in selected if record.role == span.role]
    return bool(calls) and span.locked_by < max(calls) and (span.released_by or math.inf) > min(calls)


def _released_roles(record: Record) -> Sequence[str]:
    if is_report(record):
        return [record.role or ""] if record.detail.get("unlocked") is True else []
    if action_of(record) == "unlock":
        return [record.role] if record.role else ROLES
    return []
