"""Lines out of a descriptor, whole and bounded: a longer one is told of and thrown away while it comes in."""

import os
from collections.abc import Iterator
from typing import Final

CHUNK_BYTES: Final = 1 << 16


class LineReader:
    """An iterator over lines without their newline; None stands for one that was longer than the bound."""

    def __init__(self, descriptor: int, longest: int) -> None:
        self._descriptor = descriptor
        self._max_bytes = longest
        self._lines = self._read_lines()

    def __iter__(self) -> Iterator[bytes | None]:
        return self

    def __next__(self) -> bytes | None:
        return next(self._lines)

    def _read_lines(self) -> Iterator[bytes | None]:
        held, skipping = bytearray(), False
        while chunk := os.read(self._descriptor, CHUNK_BYTES):
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                if not skipping:
                    yield self._bounded_line(held, piece)
                held.clear()
                skipping = False
            if not skipping and len(held) + len(rest) > self._max_bytes:
                yield None
                held.clear()
                skipping = True
            if not skipping:
                held += rest
        if held:
            yield bytes(held)

    def _bounded_line(self, held: bytearray, piece: bytes) -> bytes | None:
        return None if len(held) + len(piece) > self._max_bytes else bytes(held) + piece
