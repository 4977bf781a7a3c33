"""Reading the audit log: lazily, in either direction, while servers may be writing."""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from kaiza.cli.console import output
from kaiza.cli.console.id_prefix import resolve_id
from kaiza.store.audit import log_file, reader
from kaiza.store.audit.reader import read_records

RecordPredicate = Callable[[dict[str, Any]], bool]


def read_forward(root: str, since_seq: int = 1) -> Iterator[dict[str, Any]]:
    """Records from a sequence number on, oldest first."""
    return read_records(root, since_seq=since_seq)


def read_backward(root: str) -> Iterator[dict[str, Any]]:
    """All records, newest first."""
    return read_records(root, reverse=True)


def last_record(root: str) -> dict[str, Any] | None:
    """The newest record."""
    return next(read_backward(root), None)


def filter_records(records: Iterator[dict[str, Any]], matches: RecordPredicate, root: str) -> Iterator[dict[str, Any]]:
    """The matching records, with progress on a terminal between two of them."""
    newest = last_record(root)
    total = newest["seq"] if newest else 0
    with output.Progress("searching") as progress:
        for record in records:
            if matches(record):
                progress.clear()
                yield record
            else:
                progress(record["seq"], total)


def resolve_session(session_ids: Iterable[str], prefix: str) -> str:
    """The one session id that begins with the prefix; a CommandError if there is none or several."""
    return resolve_id(session_ids, prefix, "session", "`kaiza session list` lists the sessions.")


def last_records(root: str, count: int, matches: RecordPredicate) -> list[dict[str, Any]]:
    """The newest matching records, oldest first."""
    newest = islice(filter_records(read_backward(root), matches, root), count)
    return list(newest)[::-1]


def raw_lines(root: str) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Every line byte for byte, with the record it holds; None for a line that is not a record."""
    descriptor = None if log_file.is_absent(root) else log_file.open_for_reading(root)
    if descriptor is None:
        return
    try:
        for line in reader.read_lines(descriptor, 0, os.fstat(descriptor).st_size):
            yield line, _parse_record(line)
    finally:
        os.close(descriptor)


def encode_line(record: dict[str, Any]) -> bytes:
    """The record as one line of JSON, its members in the order of the log."""
    return orjson.dumps(record)


def file_extent(root: str) -> tuple[int, int]:
    """Inode and size of the log: they change with every append, and when a new log is begun."""
    try:
        status = Path(log_file.path_of(root)).stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_ino, status.st_size


def _parse_record(line: bytes) -> dict[str, Any] | None:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None
