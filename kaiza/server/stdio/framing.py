"""Lines out of a descriptor, whole and bounded: a longer one is told of and thrown away while it comes in."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
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


def take_stdio() -> tuple[int, int]:
    """Take standard input and output for the wire; print and children get nothing to read, and standard error."""
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    os.set_blocking(incoming, True)
    os.set_blocking(outgoing, True)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return incoming, outgoing


class LineWriter:
    """Where lines go. When nobody listens any more it says so once, and takes the rest silently."""

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._broken = False
        self._lock = threading.Lock()
        """Held while one line is written, so that lines never mix."""

    def send(self, line: bytes) -> None:
        """Write the line; it has left the process when this returns, unless nobody listens."""
        with self._lock:
            if not self._broken:
                self._write_all(line)

    def stop(self) -> None:
        """Let a line that is being written end, and no other begin."""
        with self._lock:
            self._broken = True

    def _write_all(self, line: bytes) -> None:
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            self._broken = True
            self._on_broken()
