"""Bytes of a log as lines, forwards in blocks or the last one backwards; memory stays small whatever is in there."""

import os
from collections.abc import Iterator
from io import BytesIO
from itertools import chain as joined

BLOCK_BYTES = 1 << 20
_MAX_LINE_BYTES = 2 * BLOCK_BYTES


def read_exactly(descriptor: int, start: int, end: int) -> bytes:
    """These bytes; fewer where the file ends before."""
    told = os.pread(descriptor, max(0, end - start), start)
    while len(told) < end - start:
        more = os.pread(descriptor, end - start - len(told), start + len(told))
        if not more:
            break
        told += more
    return told


def read_lines(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    """The lines between two places; the last may lack its newline. A line beyond all measure is cut short."""
    return joined.from_iterable(read_blocks(descriptor, start, end))


def read_blocks(descriptor: int, start: int, end: int) -> Iterator[list[bytes]]:
    """The same lines, as many at a time as are read at once."""
    kept = b""
    while start < end:
        block = read_exactly(descriptor, start, min(end, start + BLOCK_BYTES))
        if not block:
            break
        start += len(block)
        if b"\n" not in block:
            kept += block[: _MAX_LINE_BYTES - len(kept)]
            continue
        whole = split_lines(kept + block)
        kept = b"" if whole[-1].endswith(b"\n") else whole.pop()
        yield whole
    if kept:
        yield [kept]


def split_lines(told: bytes) -> list[bytes]:
    """Lines with their newlines; nothing but a newline ends one."""
    return BytesIO(told).readlines()


def last_line(descriptor: int, end: int, *, first_look: int = 4096) -> bytes:
    """The last line before `end`, read backwards: 4 KiB, doubled until it is whole."""
    look = first_look
    while True:
        start = max(0, end - look)
        told = read_exactly(descriptor, start, end)
        begin = told.rfind(b"\n", 0, max(0, len(told) - 1)) + 1
        if begin or start == 0 or look > _MAX_LINE_BYTES:
            return told[begin:]
        look *= 2
