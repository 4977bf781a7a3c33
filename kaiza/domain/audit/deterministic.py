"""Deterministic records, so that runs can be compared: times count events, durations are 0, ids follow from the calls.

A log is deterministic from its first record or not at all.
"""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kaiza.domain.audit.record import Body, Record
from kaiza.domain.timestamps import format_timestamp

NAMESPACE = uuid.UUID("c1fd1c20-77b7-4f73-b39c-8ed2dd2f2d8c")
_MARK = "deterministic"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def counted_timestamp(events: int) -> str:
    """Timestamp after this number of events: 1970-01-01T00:00:00.000Z and a millisecond for each."""
    return format_timestamp(_EPOCH + timedelta(milliseconds=events))


def derive_id(*parts: str) -> str:
    """The same id for the same parts, a UUID of version 5."""
    return str(uuid.uuid5(NAMESPACE, ":".join(parts)))


def stamp_record(body: Body, seq: int) -> Body:
    """The record with the time of its number and without durations, marked as deterministic."""
    duration = None if body["duration_ms"] is None else 0
    detail = {**_without_durations(body["detail"] or {}), _MARK: True}
    return Body({**body, "timestamp": counted_timestamp(seq - 1), "duration_ms": duration, "detail": detail})


def is_deterministic(record: Record) -> bool:
    """Whether a record is marked as deterministic."""
    return record.detail.get(_MARK) is True


def _without_durations(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: 0 if key == "duration_ms" else _without_durations(item) for key, item in value.items()}
    return [_without_durations(item) for item in value] if isinstance(value, list) else value
