"""Reading the audit log: lazily, in either direction, while servers may be writing."""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import orjson

from kaiza.cli.console import output
from kaiza.cli.console.id_prefix import resolve_id
from kaiza.domain.audit.record import Record
from kaiza.store.audit import log_file, reader
from kaiza.store.audit.reader import read_records

RecordPredicate = Callable[[Record], bool]


def read_forward(root: str, since_seq: int = 1) -> Iterator[Record]:
    """Records from a sequence number on, oldest first."""
    return read_records(root, since_seq=since_seq)


def read_backward(root: str) -> Iterator[Record]:
    """All records, newest first."""
    return read_records(root, reverse=True)


def last_record(root: str) -> Record | None:
    """The newest record."""
    return next(read_backward(root), None)


def filter_records(records: Iterator[Record], matches: RecordPredicate, root: str) -> Iterator[Record]:
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


def last_records(root: str, count: int, matches: RecordPredicate) -> list[Record]:
    """The newest matching records, oldest first."""
    newest = islice(filter_records(read_backward(root), matches, root), count)
    return list(newest)[::-1]


def raw_lines(root: str) -> Iterator[tuple[bytes, Record | None]]:
    """Every line byte for byte, with the record it holds; None for a line that is not a record."""
    descriptor = None if log_file.is_absent(root) else log_file.open_for_reading(root)
    if descriptor is None:
        return
    try:
        for line in reader.read_lines(descriptor, 0, os.fstat(descriptor).st_size):
            yield line, _parse_record(line)
    finally:
        os.close(descriptor)


def encode_line(record: Record) -> bytes:
    """The record as one line of JSON, its members in the order of the log."""
    return orjson.dumps(record.members)


def file_extent(root: str) -> tuple[int, int]:
    """Inode and size of the log: they change with every append, and when a new log is begun."""
    try:
        status = Path(log_file.path_of(root)).stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_ino, status.st_size


def _parse_record(line: bytes) -> Record | None:
    try:
        members = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return Record(members) if isinstance(members, dict) else None
