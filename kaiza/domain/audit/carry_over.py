"""State carried over into a new log when a person accepts a damaged one; of two accounts the stricter is kept.

`known` is this machine's snapshot from before the damage, `read` comes from the records that are still readable. Those
may be forged, so they can only restrict: approvals by command and seals approve only what was known.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from operator import add
from typing import Any

from kaiza.domain.audit import canonical_json
from kaiza.domain.audit.projection import (
    UNMATCHABLE_HASH,
    UNPROVEN,
    AuditState,
    PlanSeal,
    day_before,
    merge_freezes,
    merge_times,
)
from kaiza.domain.audit.record import Record
from kaiza.domain.plans.plan import PlanUsage, combine_usage

MAX_PART_BYTES = 160 * 1024
"""Size of a part in its record; the record's other members need the rest of MAX_RECORD_BYTES."""
_MAX_PIECE_BYTES = 32 * 1024
MAX_NAME_BYTES = 8 * 1024 * 1024
"""Bytes of paths that are carried over by name, for all plans together; further files are only counted."""
StatePiece = tuple[str, Mapping[str, Any]]


def merge(known: AuditState, read: AuditState, now: str) -> AuditState:
    """Merge two accounts of the same log. Sessions are not carried over."""
    since = day_before(now)
    return AuditState(
        locks={**known.locks, **read.locks},
        released={
            role: sorted(at for at in {*known.released.get(role, ()), *read.released.get(role, ())} if at > since)
            for role in {**known.released, **read.released}
        },
        reports=[at for at in merge_times(known.reports, read.reports) if at > since],
        frozen=merge_freezes(known.frozen, read.frozen),
        # A seal that only the readable records have may be forged.
        seals={
            plan_id: replace(seal, plan_hash=_agreed_hash(seal.plan_hash, read.seals.get(plan_id, seal).plan_hash))
            for plan_id, seal in {**distrust_seals(read.seals), **known.seals}.items()
        },
        approvals={
            plan_id: _agreed_hash(plan_hash, read.approvals.get(plan_id, plan_hash))
            for plan_id, plan_hash in known.approvals.items()
        },
        withdrawn={**known.withdrawn, **read.withdrawn},
        usage={
            plan_id: combine_usage(known.usage.get(plan_id, PlanUsage()), read.usage.get(plan_id, PlanUsage()), max)
            for plan_id in {**known.usage, **read.usage}
        },
        intents={**known.intents, **read.intents},
    )


def distrust_seals(seals: Mapping[str, PlanSeal]) -> dict[str, PlanSeal]:
    """The seals as ones that may be forged."""
    return {plan_id: replace(seal, how=UNPROVEN) for plan_id, seal in seals.items()}


def sum_usage_by_plan(known: Mapping[str, PlanUsage], since: Mapping[str, PlanUsage]) -> dict[str, PlanUsage]:
    """Add the usage since a snapshot to the usage in it."""
    return {
        plan_id: combine_usage(known.get(plan_id, PlanUsage()), since.get(plan_id, PlanUsage()), add)
        for plan_id in {**known, **since}
    }


def split(audit_state: AuditState) -> list[dict[str, Any]]:
    """Split the state into JSON parts that each fit into one record. The freeze and the locks are in the first."""
    parts: list[dict[str, Any]] = [
        {
            "frozen": asdict(audit_state.frozen) if audit_state.frozen else None,
            "locks": [asdict(lock) for lock in audit_state.locks.values()],
        }
    ]
    size = _record_bytes(parts[0])
    for name, piece in _iter_pieces(audit_state):
        piece_size = _record_bytes(piece)
        if size + piece_size > MAX_PART_BYTES:
            parts.append({})
            size = 0
        parts[-1].setdefault(name, []).append(piece)
        size += piece_size
    return parts


def _agreed_hash(one: str, other: str) -> str:
    # Where the accounts differ neither is trusted: a person has to approve again.
    return one if one == other else UNMATCHABLE_HASH


def _iter_pieces(audit_state: AuditState) -> Iterator[StatePiece]:
    for plan_id, seal in audit_state.seals.items():
        yield "seals", {"plan_id": plan_id, "seal": asdict(seal)}
    for plan_id, plan_hash in audit_state.approvals.items():
        yield "approvals", {"plan_id": plan_id, "plan_hash": plan_hash}
    for plan_id, action in audit_state.withdrawn.items():
        yield "withdrawn", {"plan_id": plan_id, "action": action}
    for role, at in audit_state.released.items():
        yield "released", {"role": role, "at": at}
    if audit_state.reports:
        yield "reports", {"at": audit_state.reports}
    yield from _usage_pieces(audit_state.usage)
    for request_id, intent in audit_state.intents.items():
        yield from _intent_pieces(request_id, intent)


def _usage_pieces(usage: Mapping[str, PlanUsage]) -> Iterator[StatePiece]:
    """Usage of each plan: the numbers, then the files by name while MAX_NAME_BYTES last."""
    remaining = MAX_NAME_BYTES
    for plan_id, plan_usage in usage.items():
        named: list[tuple[str, int]] = []
        for path, count in sorted(plan_usage.files.items()):
            remaining -= _record_bytes(path)
            if remaining < 0:
                break
            named.append((path, count))
        numbers = replace(plan_usage, files={}, unnamed=plan_usage.unnamed + len(plan_usage.files) - len(named))
        sums = {name: max(0, number) for name, number in asdict(numbers).items() if name != "files"}
        yield "usage", {"plan_id": plan_id, "use": {**sums, "files": []}}
        for files in _split_by_size(named):
            yield "usage", {"plan_id": plan_id, "use": {"files": files}}


def _intent_pieces(request_id: str, intent: Record) -> Iterator[StatePiece]:
    """An open intent in pieces of a few changes."""
    start = 0
    # "unlimited": its usage is carried over already, and a recovery must not subtract it, because the old log may
    # have recorded the outcome.
    members = {**intent.members, "detail": {**intent.detail, "unlimited": True}}
    for changes in _split_by_size(intent.changes):
        yield "intents", {"request_id": request_id, "intent": {**members, "changes": changes}, "at": start}
        start += len(changes)


def _split_by_size(items: Iterable[Any]) -> Iterator[list[Any]]:
    """Split items into lists of about _MAX_PIECE_BYTES, in order."""
    chunk: list[Any] = []
    size = 0
    for item in items:
        chunk.append(item)
        size += _record_bytes(item)
        if size > _MAX_PIECE_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _record_bytes(value: Any) -> int:
    """Size of a value in a record, with the paths that `detail.escaped` would list for it."""
    converted, escaped_paths = canonical_json.to_recordable({"value": value})
    return len(canonical_json.encode(converted)) + sum(map(len, escaped_paths))
