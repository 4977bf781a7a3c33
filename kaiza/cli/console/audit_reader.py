"""The record as the commands read it: lazily, in either direction, also while a server writes."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from kaiza.cli.console import output
from kaiza.store.audit import line_reader, log_file
from kaiza.store.audit.reader import read_records

RecordPredicate = Callable[[dict[str, Any]], bool]


def read_forward(root: str, since_seq: int = 1) -> Iterator[dict[str, Any]]:
    """Records from a number on, oldest first."""
    return read_records(root, since_seq=since_seq)


def read_backward(root: str) -> Iterator[dict[str, Any]]:
    """All records, newest first."""
    return read_records(root, reverse=True)


def last_record(root: str) -> dict[str, Any] | None:
    """The newest record."""
    return next(read_backward(root), None)


def filter_records(records: Iterator[dict[str, Any]], takes: RecordPredicate, root: str) -> Iterator[dict[str, Any]]:
    """The records that are wanted; while a terminal waits for the next one, it sees how far the search is."""
    newest = last_record(root)
    total = newest["seq"] if newest else 0
    with output.Progress("searching") as progress:
        for record in records:
            if takes(record):
                progress.clear()
                yield record
            else:
                progress(record["seq"], total)


def raw_lines(root: str) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Every line with its bytes as they are, and the record in it, None where it holds none."""
    descriptor = None if log_file.is_absent(root) else log_file.open_for_reading(root)
    if descriptor is None:
        return
    try:
        for line in line_reader.read_lines(descriptor, 0, os.fstat(descriptor).st_size):
            yield line, _parse_record(line)
    finally:
        os.close(descriptor)


def encode_line(record: dict[str, Any]) -> bytes:
    """The record's own line: its members are in the order in which they stand there."""
    return orjson.dumps(record)


def file_extent(root: str) -> tuple[int, int]:
    """Which file the log is, and how long: what changes when somebody writes or begins a new one."""
    try:
        found = Path(log_file.path_of(root)).stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_ino, found.st_size


def _parse_record(told: bytes) -> dict[str, Any] | None:
    try:
        found = orjson.loads(told)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
