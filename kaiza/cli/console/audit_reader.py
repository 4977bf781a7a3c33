"""Reading the audit log, with progress where a record is searched."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import orjson

from kaiza.cli.console import output
from kaiza.cli.console.id_prefix import resolve_id
from kaiza.domain.audit.record import Record
from kaiza.queries.audit_log import file_extent, last_record, raw_lines, read_backward, read_forward

__all__ = ["file_extent", "last_record", "raw_lines", "read_backward", "read_forward"]

RecordPredicate = Callable[[Record], bool]


def filter_records(records: Iterator[Record], matches: RecordPredicate, root: str) -> Iterator[Record]:
    """The matching records, with progress on a terminal between two of them."""
    newest = last_record(root)
    total = newest.seq if newest else 0
    with output.Progress("searching") as progress:
        for record in records:
            if matches(record):
                progress.clear()
                yield record
            else:
                progress(record.seq, total)


def resolve_session(session_ids: Iterable[str], prefix: str) -> str:
    """The one session id that begins with the prefix; a CommandError if there is none or several."""
    return resolve_id(session_ids, prefix, "session", "`kaiza session list` lists the sessions.")


def last_records(root: str, count: int, matches: RecordPredicate) -> list[Record]:
    """The newest matching records, oldest first."""
    newest = islice(filter_records(read_backward(root), matches, root), count)
    return list(newest)[::-1]


def encode_line(record: Record) -> bytes:
    """The record as one line of JSON, its members in the order of the log."""
    return orjson.dumps(record.members)
