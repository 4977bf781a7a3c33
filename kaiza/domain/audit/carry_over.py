"""What a new log takes over from one that a person set aside; where two accounts of it differ, the stricter counts.

What is `known` is this machine's own account from before the damage. What is `told` by the records that can still be
read binds as well, but gives no authority: an approval by command counts only where it was known.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from kaiza.domain.audit import canonical_json
from kaiza.domain.audit.projection import UNMATCHABLE_HASH, AuditState, PlanSeal, day_before, merge_times
from kaiza.domain.plans.plan import PlanUsage, max_usage

MAX_PART_BYTES = 160 * 1024
"""What a part weighs at most; what stands around it has to fit into its record too."""
_MAX_PIECE_BYTES = 32 * 1024
MAX_NAME_BYTES = 8 * 1024 * 1024
"""So many bytes of paths are carried by name over all plans; the files beyond them are only counted."""
StatePiece = tuple[str, Mapping[str, Any]]


def merge(known: AuditState, told: AuditState, now: str) -> AuditState:
    """What binds the workspace by either account."""
    since = day_before(now)
    plans = {**known.usage, **told.usage}
    return AuditState(
        locks={**known.locks, **told.locks},
        released={
            role: sorted(at for at in {*known.released.get(role, ()), *told.released.get(role, ())} if at > since)
            for role in {**known.released, **told.released}
        },
        reports=[at for at in merge_times(known.reports, told.reports) if at > since],
        frozen=known.frozen or told.frozen,
        seals=_merge_seals(known.seals, told.seals),
        approvals={one: _agreed_hash(said, told.approvals.get(one, said)) for one, said in known.approvals.items()},
        withdrawn={**known.withdrawn, **told.withdrawn},
        usage={one: max_usage(known.usage.get(one, PlanUsage()), told.usage.get(one, PlanUsage())) for one in plans},
        intents={**known.intents, **told.intents},
    )


def sum_usage_by_plan(known: Mapping[str, PlanUsage], since: Mapping[str, PlanUsage]) -> dict[str, PlanUsage]:
    """What was used of each plan up to a record, and what the records after it tell."""
    return {one: _sum_usage(known.get(one, PlanUsage()), since.get(one, PlanUsage())) for one in {**known, **since}}


def split(facts: AuditState) -> list[dict[str, Any]]:
    """The same as JSON, each part as large as one record can tell; a freeze and the locks are in the first."""
    made: list[dict[str, Any]] = [
        {
            "frozen": asdict(facts.frozen) if facts.frozen else None,
            "locks": [asdict(lock) for lock in facts.locks.values()],
        }
    ]
    size = _record_bytes(made[0])
    for name, piece in _iter_pieces(facts):
        weight = _record_bytes(piece)
        if size + weight > MAX_PART_BYTES:
            made.append({})
            size = 0
        made[-1].setdefault(name, []).append(piece)
        size += weight
    return made


def _sum_usage(one: PlanUsage, other: PlanUsage) -> PlanUsage:
    return PlanUsage(
        {path: one.files.get(path, 0) + other.files.get(path, 0) for path in {**one.files, **other.files}},
        one.lines + other.lines,
        one.bytes + other.bytes,
        one.operations + other.operations,
        one.refusals + other.refusals,
        one.unnamed + other.unnamed,
    )


def _agreed_hash(one: str, other: str) -> str:
    return one if one == other else UNMATCHABLE_HASH


def _merge_seals(known: Mapping[str, PlanSeal], told: Mapping[str, PlanSeal]) -> dict[str, PlanSeal]:
    """Every seal; one of no bytes where two differ."""
    found = {**known, **told}
    return {
        plan_id: replace(seal, plan_hash=_agreed_hash(seal.plan_hash, known.get(plan_id, seal).plan_hash))
        for plan_id, seal in found.items()
    }


def _iter_pieces(facts: AuditState) -> Iterator[StatePiece]:
    for plan_id, seal in facts.seals.items():
        yield "seals", {"plan_id": plan_id, "seal": asdict(seal)}
    for plan_id, plan_hash in facts.approvals.items():
        yield "approvals", {"plan_id": plan_id, "plan_hash": plan_hash}
    for plan_id, action in facts.withdrawn.items():
        yield "withdrawn", {"plan_id": plan_id, "action": action}
    for role, at in facts.released.items():
        yield "released", {"role": role, "at": at}
    if facts.reports:
        yield "reports", {"at": facts.reports}
    yield from _usage_pieces(facts.usage)
    for request_id, intent in facts.intents.items():
        yield from _intent_pieces(request_id, intent)


def _usage_pieces(usage: Mapping[str, PlanUsage]) -> Iterator[StatePiece]:
    """What was used of each plan: the numbers, then the files by name as long as there is room."""
    room = MAX_NAME_BYTES
    for plan_id, use in usage.items():
        named: list[tuple[str, int]] = []
        for path, count in sorted(use.files.items()):
            room -= _record_bytes(path)
            if room < 0:
                break
            named.append((path, count))
        numbers = replace(use, files={}, unnamed=use.unnamed + len(use.files) - len(named))
        sums = {name: max(0, number) for name, number in asdict(numbers).items() if name != "files"}
        yield "usage", {"plan_id": plan_id, "use": {**sums, "files": []}}
        for some in _split_by_size(named):
            yield "usage", {"plan_id": plan_id, "use": {"files": some}}


def _intent_pieces(request_id: str, intent: Mapping[str, Any]) -> Iterator[StatePiece]:
    """An open intent, a few of its changes at a time.

    It was charged, and what its recovery finds gives nothing back: the old log may have known better.
    """
    at = 0
    rest = {**intent, "detail": {**(intent["detail"] or {}), "unlimited": True}}
    for some in _split_by_size(intent["changes"]):
        yield "intents", {"request_id": request_id, "intent": {**rest, "changes": some}, "at": at}
        at += len(some)


def _split_by_size(items: Iterable[Any]) -> Iterator[list[Any]]:
    """The items in their order, as many together as make one piece."""
    some: list[Any] = []
    size = 0
    for one in items:
        some.append(one)
        size += _record_bytes(one)
        if size > _MAX_PIECE_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def _record_bytes(value: Any) -> int:
    told, places = canonical_json.to_recordable({"value": value})
    return len(canonical_json.encode(told)) + sum(map(len, places))
