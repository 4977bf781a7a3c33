"""What a person puts back goes ahead like any change, part by part: intent, files, outcome. No plan is asked for it.

The parts are as large as a record may be; each happens whole or not at all.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.boundary.call import current_timestamp
from kaiza.boundary.outcome import as_system_error
from kaiza.domain import errors
from kaiza.domain.audit import canonical_json, record
from kaiza.domain.change import Change
from kaiza.store.workspace import Workspace

MAX_BATCH_BYTES = 160 * 1024
"""What a part's changes weigh at most; what stands around them has to fit into the record too."""
_ID_BYTES = 40
_MAX_MODE = 0o7777


@dataclass(frozen=True, slots=True)
class UndoBatch:
    """Changes that are made together, and the calls whose changes they put back, newest first."""

    changes: tuple[Change, ...]
    undone: tuple[str, ...]


def split_batches(changes: Iterable[Change], records: Sequence[Mapping[str, Any]]) -> Iterator[UndoBatch]:
    """The changes in their order, as many at a time as one record can tell."""
    named = _calls_by_path(records)
    kept: list[Change] = []
    undone: set[str] = set()
    size = 0
    for change in changes:
        more = {request_id for path in change.touched_paths for request_id in named[str(path)]}
        weight = _record_bytes(change) + _ID_BYTES * len(more - undone)
        if kept and size + weight > MAX_BATCH_BYTES:
            yield _new_batch(kept, undone, records)
            kept, undone, size = [], set(), 0
            weight = _record_bytes(change) + _ID_BYTES * len(more)
        kept.append(change)
        undone |= more
        size += weight
    if kept:
        yield _new_batch(kept, undone, records)


def execute_batch(ground: Workspace, part: UndoBatch, person: str) -> Mapping[str, Any]:
    """Make one part's changes and tell the record. If it raises, its files are as before, and that is recorded too."""
    txn = str(uuid.uuid4())
    prepared = ground.transactions.prepare(txn, part.changes, undoes=part.undone)
    changes = [change.as_record() for change in part.changes]
    detail = {"action": "undo", "person": person, "undone": list(part.undone), "modes": prepared.original_modes}
    members = {"request_id": txn, "workspace_root": ground.root}
    ground.log.append(lambda: _intent_body(ground, members, changes, person), durable=True)
    try:
        ground.transactions.apply(prepared)
    except BaseException as raised:
        _record_failure(ground, members, as_system_error(raised, "FILE_WRITE_FAILED"), person)
        raise
    outcome = {**members, "outcome": "ok", "changes": changes, "detail": detail}
    try:
        written = ground.log.append(
            lambda: record.new_body("person", timestamp=current_timestamp(), **outcome), durable=True
        )
    except BaseException:
        ground.transactions.roll_back(prepared)
        raise
    ground.transactions.finalize(txn)
    return written


def _intent_body(
    ground: Workspace, members: Mapping[str, Any], changes: Sequence[Mapping[str, Any]], person: str
) -> record.Body:
    detail = {"live": ground.transactions.liveness_id, "unlimited": True, "action": "undo", "person": person}
    return record.new_body("intent", timestamp=current_timestamp(), changes=list(changes), detail=detail, **members)


def _record_failure(ground: Workspace, members: Mapping[str, Any], error: errors.SystemError, person: str) -> None:
    told = {"outcome": "error", "error_code": error.error_code, "human_message": error.human_message}
    detail = {"action": "undo", "person": person}
    ground.log.append(
        lambda: record.new_body("person", timestamp=current_timestamp(), detail=detail, **told, **members), durable=True
    )


def _new_batch(changes: Sequence[Change], undone: set[str], records: Sequence[Mapping[str, Any]]) -> UndoBatch:
    newest_first = (one["request_id"] for one in reversed(records) if one["request_id"] in undone)
    return UndoBatch(tuple(changes), tuple(dict.fromkeys(newest_first)))


def _calls_by_path(records: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Which calls changed each path; what a file was moved from or to counts as the same."""
    found: dict[str, set[str]] = {}
    for one in records:
        for change in one["changes"]:
            path, source = change["path"], change["source"]
            calls = found.get(path, set()) | found.get(source or path, set()) | {one["request_id"]}
            found[path] = found[source or path] = calls
    return found


def _record_bytes(change: Change) -> int:
    """What a change adds to a record at most: itself, the modes of what it replaces, and where a name was escaped."""
    own_modes = {str(path): _MAX_MODE for path in change.touched_paths}
    told, places = canonical_json.to_recordable({"change": change.as_record(), "modes": own_modes})
    return len(canonical_json.encode(told)) + sum(map(len, places))
