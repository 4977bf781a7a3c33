"""Rows of the list of records."""

from collections.abc import Mapping, Sequence

from kaiza.domain.review.actors import action_of, actor_of, detail_of, is_refusal
from kaiza.domain.review.evidence import Record
from kaiza.domain.review.record_paths import named_paths
from kaiza.domain.review.report import RecordGroup, RecordRow

MAX_RECORDS = 50_000


def list_records(selected: Sequence[Record], lines: Mapping[int, bytes]) -> tuple[RecordRow, ...]:
    """Rows of the newest MAX_RECORDS records."""
    return tuple(_row_of(record, lines) for record in selected[-MAX_RECORDS:])


def _row_of(record: Record, lines: Mapping[int, bytes]) -> RecordRow:
    paths = named_paths(record)
    more = f" +{len(paths) - 1}" if len(paths) > 1 else ""
    return RecordRow(
        seq=record["seq"],
        at=str(record["timestamp"]),
        actor=actor_of(record),
        kind=str(record["kind"]),
        tool_name=str(record["tool_name"] or record["kind"]),
        what=f"{paths[0]}{more}" if paths else str(record["plan_id"] or ""),
        outcome=_outcome_of(record),
        group=_group_of(record),
        duration_ms=record["duration_ms"] if isinstance(record["duration_ms"], int) else None,
        line=lines.get(record["seq"], b"").decode("utf-8", "replace").rstrip("\n"),
    )


def _outcome_of(record: Record) -> str:
    if is_refusal(record):
        return str(record["error_code"])
    if record["kind"] == "recovery":
        return str(detail_of(record).get("result") or "recovery")
    words = {"intent": "intent", "plan": "sealed", "person": action_of(record) or "decision"}
    return words.get(str(record["kind"])) or str(record["outcome"] or "")


def _group_of(record: Record) -> RecordGroup:
    if is_refusal(record):
        return "refusal"
    if record["changes"]:
        return "change"
    return "read" if record["kind"] == "call" else "other"
