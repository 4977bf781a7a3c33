"""What a review reads in records of the log: who acted, which kind of act it was, which paths it names."""

from collections.abc import Mapping, Sequence

from kaiza.domain import error_codes
from kaiza.domain.audit.projection import is_change_attempt, is_locking_refusal
from kaiza.domain.audit.record import Record
from kaiza.domain.audit.recorded_names import recorded_paths
from kaiza.domain.review.report import Actor, RecordGroup, RecordRow
from kaiza.domain.roles import PLANNER

MAX_RECORDS = 50_000


def actor_of(record: Record) -> Actor:
    """The lane of a record: a person, or the role that called."""
    return "person" if record.kind == "person" else actor_of_role(record.role)


def actor_of_role(role: object) -> Actor:
    """The lane of a role; calls without a role are drawn with the executor's."""
    return "planner" if role == PLANNER else "executor"


def is_refusal(record: Record) -> bool:
    """Whether the record is a refused call."""
    return record.kind == "call" and record.outcome == "error"


def is_locking(record: Record) -> bool:
    """Whether the record is a refusal that locks the role."""
    if not is_refusal(record) or record.error_code not in error_codes.SYSTEM_ERROR_CODES:
        return False
    asked = is_change_attempt(record.tool_name or "", record.arguments)
    return is_locking_refusal(record.error_code or "", record.invariant_id, record.cause, asked_for_change=asked)


def is_report(record: Record) -> bool:
    """Whether the record is a report that an agent wrote."""
    return record.kind == "call" and record.tool_name == "write_report" and record.outcome == "ok"


def action_of(record: Record) -> str | None:
    """What a person did; None for other records."""
    action = record.detail.get("action")
    return action if record.kind == "person" and isinstance(action, str) else None


def merge_records(*groups: Sequence[Record], without: Sequence[Record] = ()) -> list[Record]:
    """Records of several groups in the order of the log, each once."""
    left_out = {record.seq for record in without}
    by_seq = {record.seq: record for group in groups for record in group if record.seq not in left_out}
    return [by_seq[seq] for seq in sorted(by_seq)]


def named_paths(record: Record) -> tuple[str, ...]:
    """The recorded paths; the refused one first."""
    refused = record.cause.get("path") if isinstance(record.cause, Mapping) else None
    return tuple(dict.fromkeys((*([refused] if isinstance(refused, str) else []), *recorded_paths(record))))


def list_records(selected: Sequence[Record], lines: Mapping[int, bytes]) -> tuple[RecordRow, ...]:
    """Rows of the newest MAX_RECORDS records; `lines` of the log by number."""
    return tuple(_row_of(record, lines) for record in selected[-MAX_RECORDS:])


def _row_of(record: Record, lines: Mapping[int, bytes]) -> RecordRow:
    paths, kind = named_paths(record), record.kind
    more = f" +{len(paths) - 1}" if len(paths) > 1 else ""
    group: RecordGroup = "change" if record.changes else "read" if kind == "call" else "other"
    words = {"intent": "intent", "plan": "sealed", "person": action_of(record) or "decision"}
    outcome = words.get(kind) or record.outcome or ""
    if is_refusal(record):
        group, outcome = "refusal", record.error_code or ""
    elif kind == "recovery":
        outcome = str(record.detail.get("result") or "recovery")
    return RecordRow(
        seq=record.seq,
        at=record.timestamp,
        actor=actor_of(record),
        kind=kind,
        tool_name=record.tool_name or kind,
        what=f"{paths[0]}{more}" if paths else record.plan_id or "",
        outcome=outcome,
        group=group,
        duration_ms=record.duration_ms if isinstance(record.duration_ms, int) else None,
        line=lines.get(record.seq, b"").decode("utf-8", "replace").rstrip("\n"),
    )
