"""The records of a log, one by one and lazily, from a number on or from the end; what is no record is passed over."""

import os
from collections.abc import Iterator
from typing import Any

import orjson

from kaiza.store.audit import log_file
from kaiza.store.audit.line_reader import BLOCK_BYTES, read_exactly, read_lines


def read_records(root: str, *, since_seq: int = 1, reverse: bool = False) -> Iterator[dict[str, Any]]:
    """The whole records, `entry_hash` and all, of the log as long as it is now. No log: none."""
    if log_file.is_absent(root):
        return
    descriptor = log_file.open_for_reading(root)
    if descriptor is None:
        return
    try:
        size = os.fstat(descriptor).st_size
        start = _find_offset(descriptor, size, since_seq) if since_seq > 1 else 0
        found = _read_lines_reversed(descriptor, start, size) if reverse else read_lines(descriptor, start, size)
        for line in found:
            told = _parse_record(line)
            if told is not None and told["seq"] >= since_seq:
                yield told
    finally:
        os.close(descriptor)


def _find_offset(descriptor: int, size: int, seq: int) -> int:
    """The beginning of a line before which all records have a smaller number; found by halving, not by reading."""
    low, high = 0, size
    while high - low > BLOCK_BYTES:
        middle = (low + high) // 2
        found = _first_record_after(descriptor, middle, high)
        if found is None:
            return low
        place, number = found
        if number < seq:
            low = place
        else:
            high = middle
    return low


def _first_record_after(descriptor: int, start: int, end: int) -> tuple[int, int] | None:
    """Where the first whole record after a place begins, and its number."""
    place = start
    for number, line in enumerate(read_lines(descriptor, start, end)):
        told = _parse_record(line) if number else None
        if told is not None:
            return place, told["seq"]
        place += len(line)
    return None


def _read_lines_reversed(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    rest = b""
    while end > start:
        begin = max(start, end - BLOCK_BYTES)
        first, *whole = (read_exactly(descriptor, begin, end) + rest).split(b"\n")
        yield from reversed(whole)
        rest, end = first, begin
    yield rest


def _parse_record(line: bytes) -> dict[str, Any] | None:
    try:
        told = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return told if type(told) is dict and type(told.get("seq")) is int else None
