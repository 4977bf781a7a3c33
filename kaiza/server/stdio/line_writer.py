"""Answers go out whole, one line at a time, through a descriptor that nothing else in the process holds."""

import os
import threading
from collections.abc import Callable


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
