"""Events of the timeline: one for each call, decision and recovery; an interval where the moment is not known."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from kaiza.domain.audit.inverse_changes import is_undo, took_effect
from kaiza.domain.audit.undone_changes import undone_paths
from kaiza.domain.review.actors import action_of, actor_of, is_locking, is_refusal
from kaiza.domain.review.evidence import Record
from kaiza.domain.review.locks import find_locks
from kaiza.domain.review.record_paths import named_paths
from kaiza.domain.review.report import PlanCard, UngovernedReview
from kaiza.domain.review.timeline import EventKind, Timeline, TimelineEvent

_HOWS = {
    "edited": "approved by an edit of its file",
    "command": "approved by command",
    "merged": "approved by a merge",
    "signed": "approved by a signature",
    "unproven": "approval not proven",
}
_KINDS_BY_TOOL: dict[str, EventKind] = {"save_plan": "draft", "write_report": "report"}


def build_timeline(
    selected: Sequence[Record],
    others: Sequence[Record],
    plans: Iterable[PlanCard],
    ungoverned: UngovernedReview,
    made_at: str,
) -> Timeline:
    """The timeline of the selected records. `others` explain them: decisions of people, later undos, reports."""
    times = [str(record["timestamp"]) for record in selected]
    undone = {request_id for request_id, _ in undone_paths(_effective([*selected, *others]))}
    events = [
        *(_event_of(record, undone) for record in selected if record["kind"] in ("call", "recovery")),
        *(event for record in others if record["kind"] == "person" for event in _decision_events(record)),
        *(event for card in plans for event in _approval_events(card)),
        *_outside_events(ungoverned, times, made_at),
    ]
    return Timeline(
        tuple(sorted(events, key=lambda event: (event.at, event.seq or 0))),
        find_locks(selected, others),
        min(times, default=None),
        max(times, default=None),
    )


def _effective(records: Iterable[Record]) -> list[Record]:
    by_seq = {record["seq"]: record for record in records if took_effect(record)}
    return [by_seq[seq] for seq in sorted(by_seq)]


def _event_of(record: Record, undone: AbstractSet[str | None]) -> TimelineEvent:
    paths = named_paths(record)
    return TimelineEvent(
        kind=_kind_of(record, undone),
        actor=actor_of(record),
        at=str(record["timestamp"]),
        label=str(record["tool_name"] or record["kind"]),
        seq=record["seq"],
        path=paths[0] if paths else None,
        error_code=record["error_code"],
    )


def _kind_of(record: Record, undone: AbstractSet[str | None]) -> EventKind:
    if record["kind"] == "recovery":
        return "recovery"
    if is_refusal(record):
        return "locking_refusal" if is_locking(record) else "refusal"
    if not record["changes"]:
        return _KINDS_BY_TOOL.get(str(record["tool_name"]), "read")
    if is_undo(record):
        return "undo"
    return "undone_change" if record["request_id"] in undone else "change"


def _decision_events(record: Record) -> Iterator[TimelineEvent]:
    action = action_of(record)
    # An approval is drawn with its plan.
    if action is None or action == "approve":
        return
    kind: EventKind = "undo" if action == "undo" else "decision"
    paths = named_paths(record)
    at = str(record["timestamp"])
    yield TimelineEvent(kind, "person", at, action, seq=record["seq"], path=paths[0] if paths else None)


def _approval_events(card: PlanCard) -> Iterator[TimelineEvent]:
    if card.how is None:
        return
    label = _HOWS[card.how]
    if card.interval is not None:
        since = card.interval.after or card.interval.before
        yield TimelineEvent("approval", "person", since, label, card.sealed_seq, card.interval.before)
    elif card.approved_at is not None:
        yield TimelineEvent("approval", "person", card.approved_at, label, card.sealed_seq)


def _outside_events(ungoverned: UngovernedReview, times: Sequence[str], made_at: str) -> Iterator[TimelineEvent]:
    if ungoverned.count:
        since = ungoverned.compared_since or max(times, default=made_at)
        label = "1 file" if ungoverned.count == 1 else f"{ungoverned.count:,} files"
        yield TimelineEvent("outside", "outside", since, label, until=made_at)
