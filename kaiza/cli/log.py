"""The record as the commands read it: lazily, in either direction, also while a server writes."""

from collections.abc import Iterator
from typing import Any

import orjson

from kaiza.store import audit_log


def forward(root: str, since_seq: int = 1) -> Iterator[dict[str, Any]]:
    """Records from a number on, oldest first."""
    return audit_log.records(root, since_seq=since_seq)


def backward(root: str) -> Iterator[dict[str, Any]]:
    """All records, newest first."""
    return audit_log.records(root, reverse=True)


def line(record: dict[str, Any]) -> bytes:
    """The record's own line: its members are in the order in which they stand there."""
    return orjson.dumps(record)
