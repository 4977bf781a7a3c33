"""Lines of a log: forwards in blocks, or the last one backwards. Memory is bounded whatever the file contains."""

from collections.abc import Iterator
from io import BytesIO
from itertools import chain

from kaiza.store.disk.byte_io import read_range

BLOCK_BYTES = 1 << 20
# Eight times the longest record: whatever is longer is not one.
_MAX_LINE_BYTES = 2 * BLOCK_BYTES


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
            rest += block[: _MAX_LINE_BYTES - len(rest)]
            continue
        lines = split_lines(rest + block)
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
        if begin or start == 0 or length > _MAX_LINE_BYTES:
            return content[begin:]
        length *= 2
