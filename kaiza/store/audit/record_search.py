"""Search of the log for records that contain a text, without parsing the others.

The text is searched in blocks of bytes, which takes a second for several million records. It may match more than the
member that is meant: the caller checks the records.
"""

import os
from collections.abc import Iterator, Sequence

import orjson

from kaiza.domain.audit import canonical_json
from kaiza.domain.audit.hash_chain import MAX_LINE_BYTES
from kaiza.domain.audit.record import Record
from kaiza.store.audit import log_file
from kaiza.store.audit.reader import BLOCK_BYTES, find_offset, parse_record, read_lines, split_lines
from kaiza.store.disk.byte_io import last_data_end, next_data, read_range

_MAX_REST = MAX_LINE_BYTES


def member_text(name: str, value: str) -> bytes:
    """A member as the log writes it. Without its last quote it matches every value that begins so."""
    recorded, _ = canonical_json.to_recordable(value)
    return orjson.dumps({name: recorded})[1:-1]


def search_records(root: str, texts: Sequence[bytes], *, since_seq: int = 1) -> Iterator[tuple[bytes, Record]]:
    """Lines with one of the texts and the records in them, oldest first."""
    with _LogDescriptor(root) as descriptor:
        if descriptor is None:
            return
        end = os.fstat(descriptor).st_size
        start = find_offset(descriptor, end, lambda record: record.seq < since_seq) if since_seq > 1 else 0
        for line in _matching_lines(descriptor, start, end, texts):
            record = parse_record(line)
            if record is not None and record.seq >= since_seq:
                yield line, record


def read_since(root: str, timestamp: str) -> Iterator[tuple[bytes, Record]]:
    """Lines and records from about this time on. Some before it are among them; times need not be in order."""
    with _LogDescriptor(root) as descriptor:
        if descriptor is None:
            return
        end = os.fstat(descriptor).st_size
        start = find_offset(descriptor, end, lambda record: record.timestamp < timestamp)
        for line in read_lines(descriptor, start, end):
            record = parse_record(line)
            if record is not None:
                yield line, record


def search_backward(root: str, text: bytes) -> Iterator[Record]:
    """Records with a text, newest first."""
    with _LogDescriptor(root) as descriptor:
        if descriptor is None:
            return
        for part in _blocks_backward(descriptor, os.fstat(descriptor).st_size):
            for line in reversed(split_lines(part)) if text in part else ():
                record = parse_record(line) if text in line else None
                if record is not None:
                    yield record


class _LogDescriptor:
    """The log, open for reading; None if there is none."""

    def __init__(self, root: str) -> None:
        self._descriptor = None if log_file.is_absent(root) else log_file.open_for_reading(root)

    def __enter__(self) -> int | None:
        return self._descriptor

    def __exit__(self, *_error: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)


def _blocks_backward(descriptor: int, end: int) -> Iterator[bytes]:
    """Blocks of whole lines, the last one first."""
    rest = b""
    while end > 0:
        begin = max(0, end - BLOCK_BYTES)
        whole = read_range(descriptor, begin, end) + rest
        cut = whole.find(b"\n") + 1 if begin else 0
        if cut or not begin:
            yield whole[cut:]
            rest = whole[:cut]
        else:
            rest = whole[:_MAX_REST]
        end = begin if len(rest) < _MAX_REST else last_data_end(descriptor, begin)


def _matching_lines(descriptor: int, start: int, end: int, texts: Sequence[bytes]) -> Iterator[bytes]:
    rest = b""
    while start < end:
        block = read_range(descriptor, start, min(end, start + BLOCK_BYTES))
        if not block:
            break
        start += len(block)
        whole = rest + block
        cut = whole.rfind(b"\n") + 1
        yield from _lines_in(whole, cut, texts)
        rest = whole[cut:][:_MAX_REST]
        if len(rest) >= _MAX_REST:
            start = next_data(descriptor, start, end)  # a hole of a sparse file has no line to find
    yield from _lines_in(rest, len(rest), texts)


def _lines_in(block: bytes, end: int, texts: Sequence[bytes]) -> Iterator[bytes]:
    """The lines before `end` that have one of the texts, in order."""
    starts: set[int] = set()
    for text in texts:
        at = block.find(text, 0, end)
        while at >= 0:
            starts.add(block.rfind(b"\n", 0, at) + 1)
            following = block.find(b"\n", at, end)
            at = -1 if following < 0 else block.find(text, following, end)
    for begin in sorted(starts):
        following = block.find(b"\n", begin, end)
        yield block[begin:] if following < 0 else block[begin : following + 1]
