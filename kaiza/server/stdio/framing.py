"""Line framing over file descriptors: a bounded reader and a writer for concurrent threads."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final

CHUNK_BYTES: Final = 1 << 16


class LineReader:
    """Iterator over lines without their newline; yields None for each line longer than `max_bytes`."""

    def __init__(self, descriptor: int, max_bytes: int) -> None:
        self._descriptor = descriptor
        self._max_bytes = max_bytes
        self._lines = self._read_lines()

    def __iter__(self) -> Iterator[bytes | None]:
        return self

    def __next__(self) -> bytes | None:
        return next(self._lines)

    def _read_lines(self) -> Iterator[bytes | None]:
        buffered, is_skipping = bytearray(), False
        while chunk := os.read(self._descriptor, CHUNK_BYTES):
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                if not is_skipping:
                    yield self._bounded_line(buffered, piece)
                buffered.clear()
                is_skipping = False
            # Reported as soon as the bound is passed, and discarded from there on: memory stays bounded.
            if not is_skipping and len(buffered) + len(rest) > self._max_bytes:
                yield None
                buffered.clear()
                is_skipping = True
            if not is_skipping:
                buffered += rest
        if buffered:
            yield bytes(buffered)

    def _bounded_line(self, buffered: bytearray, piece: bytes) -> bytes | None:
        return None if len(buffered) + len(piece) > self._max_bytes else bytes(buffered) + piece


def take_stdio() -> tuple[int, int]:
    """Reserve standard input and output for the protocol; `print` and child processes get stderr and an empty input."""
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    # A client may hand over non-blocking descriptors; both are used with blocking calls.
    os.set_blocking(incoming, True)
    os.set_blocking(outgoing, True)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return incoming, outgoing


class LineWriter:
    """Writer of whole lines for several threads. Once a write fails, calls `on_broken` and discards further lines."""

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._is_broken = False
        self._lock = threading.Lock()  # held while one line is written, so that lines do not mix

    def send(self, line: bytes) -> None:
        """Write the line; blocks until the pipe has taken all of it."""
        with self._lock:
            if not self._is_broken:
                self._write_all(line)

    def stop(self) -> None:
        """Wait for the line that is being written, and discard all further ones."""
        with self._lock:
            self._is_broken = True

    def _write_all(self, line: bytes) -> None:
        rest = memoryview(line)
        try:
            while rest:  # a pipe may take only part of a long line
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            self._is_broken = True
            self._on_broken()
