"""Reader of the log: lines, and the records in them, lazily, from a number on or backwards from the end.

Lines that hold no record are skipped; nothing is verified here. Memory is bounded whatever the file contains. Records
that contain a text are searched in blocks of bytes, without parsing the others: a second for several million records.
The text may match more than the member that is meant, so the caller checks the records.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import chain

import orjson

from kaiza.domain.audit import canonical_json
from kaiza.domain.audit.hash_chain import MAX_LINE_BYTES
from kaiza.domain.audit.record import Record
from kaiza.domain.audit.recorded_names import restore_names
from kaiza.store.audit import log_file
from kaiza.store.disk.byte_io import last_data_end, next_data, read_range

BLOCK_BYTES = 1 << 20


def read_lines(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    """Lines between two offsets; the last may lack its newline. A line over 2 MiB is truncated."""
    return chain.from_iterable(read_blocks(descriptor, start, end))


def read_blocks(descriptor: int, start: int, end: int) -> Iterator[list[bytes]]:
    """The same lines, grouped by the block in which they end."""
    rest = b""
    while start < end:
        block = read_range(descriptor, start, min(end, start + BLOCK_BYTES))
        if not block:
            break
        start += len(block)
        if b"\n" not in block:
            rest += block[: MAX_LINE_BYTES - len(rest)]
            if len(rest) >= MAX_LINE_BYTES:
                # A hole of a sparse file has no newline, and may be larger than what can be read in a lifetime.
                start = next_data(descriptor, start, end)
            continue
        lines = split_lines(rest + block)
        if len(lines[0]) > MAX_LINE_BYTES:
            # Also where its end is in this block: whether it is cut must not depend on where blocks begin.
            lines[0] = lines[0][: MAX_LINE_BYTES - 1] + b"\n"
        rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
        yield lines
    if rest:
        yield [rest]


def split_lines(content: bytes) -> list[bytes]:
    """Lines with their newlines. Unlike `bytes.splitlines`, only a line feed ends one."""
    return BytesIO(content).readlines()


def last_line(descriptor: int, end: int) -> bytes:
    """The last line before `end`, read backwards: 4 KiB, doubled until they hold the whole line."""
    length = 4096
    while True:
        start = max(0, end - length)
        content = read_range(descriptor, start, end)
        begin = content.rfind(b"\n", 0, max(0, len(content) - 1)) + 1
        if begin or start == 0 or length > MAX_LINE_BYTES:
            return content[begin:]
        length *= 2


def read_records(root: str, *, since_seq: int = 1, reverse: bool = False) -> Iterator[Record]:
    """Records in the log, `entry_hash` included, up to the end it has when the first is asked for."""
    with _opened_log(root) as descriptor:
        if descriptor is None:
            return
        size = os.fstat(descriptor).st_size
        start = find_offset(descriptor, size, lambda record: record.seq < since_seq) if since_seq > 1 else 0
        lines = _read_lines_reversed(descriptor, start, size) if reverse else read_lines(descriptor, start, size)
        for line in lines:
            record = parse_record(line)
            if record is not None and (since_seq <= 1 or record.seq >= since_seq):
                yield record


@contextmanager
def _opened_log(root: str) -> Iterator[int | None]:
    """Descriptor of the log; None if there is none."""
    descriptor = log_file.open_for_reading(root)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def find_offset(descriptor: int, size: int, is_before: Callable[[Record], bool]) -> int:
    """Offset of a line with only records before it that `is_before` is true of, found by bisection."""
    low, high = 0, size
    while high - low > BLOCK_BYTES:
        middle = (low + high) // 2
        first = _first_record_after(descriptor, middle, high)
        if first is None:
            return low
        offset, record = first
        if is_before(record):
            low = offset
        else:
            high = middle
    return low


def _first_record_after(descriptor: int, start: int, end: int) -> tuple[int, Record] | None:
    """Offset of the first record that begins after `start`, which may lie within a line, and the record."""
    offset = start
    for index, line in enumerate(read_lines(descriptor, start, end)):
        record = parse_record(line) if index else None
        if record is not None:
            return offset, record
        offset += len(line)
    return None


def _read_lines_reversed(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    rest = b""
    while end > start:
        begin = max(start, end - BLOCK_BYTES)
        first, *lines = (read_range(descriptor, begin, end) + rest).split(b"\n")
        yield from reversed(lines)
        rest, end = first[:MAX_LINE_BYTES], begin
        if len(rest) >= MAX_LINE_BYTES:
            end = max(start, last_data_end(descriptor, end))  # see `read_blocks`
    yield rest


def parse_record(line: bytes) -> Record | None:
    """The record in a line, its names as files have them; None if it holds none."""
    try:
        members = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if type(members) is not dict or type(members.get("seq")) is not int:
        return None
    # Few records have a detail, and the others no names to restore.
    return restore_names(Record(members)) if members.get("detail") else Record(members)


def member_text(name: str, value: str) -> bytes:
    """A member as the log writes it. Without its last quote it matches every value that begins so."""
    recorded, _ = canonical_json.to_recordable(value)
    return orjson.dumps({name: recorded})[1:-1]


def search_records(root: str, texts: Sequence[bytes], *, since_seq: int = 1) -> Iterator[tuple[bytes, Record]]:
    """Lines with one of the texts and the records in them, oldest first."""
    with _opened_log(root) as descriptor:
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
    with _opened_log(root) as descriptor:
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
    with _opened_log(root) as descriptor:
        if descriptor is None:
            return
        for part in _blocks_backward(descriptor, os.fstat(descriptor).st_size):
            for line in reversed(split_lines(part)) if text in part else ():
                record = parse_record(line) if text in line else None
                if record is not None:
                    yield record


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
            rest = whole[:MAX_LINE_BYTES]
        end = begin if len(rest) < MAX_LINE_BYTES else last_data_end(descriptor, begin)


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
        rest = whole[cut:][:MAX_LINE_BYTES]
        if len(rest) >= MAX_LINE_BYTES:
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
