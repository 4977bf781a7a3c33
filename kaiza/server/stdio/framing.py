"""Line framing over file descriptors: a bounded reader and a writer for concurrent threads."""

import os
import select
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final

from kaiza.wire.outline import Outline

CHUNK_BYTES: Final = 1 << 16


class LineReader:
    """Iterator over lines without their newline; yields the outline of each line longer than `max_bytes`."""

    def __init__(self, descriptor: int, max_bytes: int) -> None:
        self._descriptor = descriptor
        self._max_bytes = max_bytes
        self._lines = self._read_lines()

    def __iter__(self) -> Iterator[bytes | Outline]:
        return self

    def __next__(self) -> bytes | Outline:
        return next(self._lines)

    def _read_lines(self) -> Iterator[bytes | Outline]:
        line = BoundedBytes(self._max_bytes)
        while chunk := os.read(self._descriptor, CHUNK_BYTES):
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                line.add(piece)
                yield line.take()
                line = BoundedBytes(self._max_bytes)
            line.add(rest)
        if line.size:
            yield line.take()


class BoundedBytes:
    """Bytes that arrive in pieces. Beyond `max_bytes` only their outline is kept: the id of a request may come last."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffered = bytearray()
        self._outline: Outline | None = None

    @property
    def size(self) -> int:
        """Number of bytes so far."""
        return len(self._buffered if self._outline is None else self._outline)

    def add(self, piece: bytes) -> None:
        """Add the next piece."""
        if self._outline is None and len(self._buffered) + len(piece) <= self._max_bytes:
            self._buffered += piece
            return
        if self._outline is None:
            self._outline = Outline()
            self._outline.feed(self._buffered)
            self._buffered = bytearray()
        self._outline.feed(piece)

    def take(self) -> bytes | Outline:
        """All bytes, or the outline of too many."""
        return bytes(self._buffered) if self._outline is None else self._outline


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
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._lock = threading.Lock()  # held while one line is written, so that lines do not mix

    def send(self, line: bytes) -> None:
        """Write the line; blocks until the pipe has taken all of it."""
        with self._lock:
            if not self._is_broken:
                self._write_all(line)

    def offer(self, line: bytes) -> None:
        """Write a line of at most PIPE_BUF bytes if the client reads; drop it if that would block."""
        if self._lock.acquire(blocking=False):
            try:
                is_ready = self._poll.poll(0) == [(self._descriptor, select.POLLOUT)]
                if is_ready and not self._is_broken:
                    self._write_all(line)
            finally:
                self._lock.release()

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
