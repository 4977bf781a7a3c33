"""Self-pipe: wakes the main thread for signals and events without a lost wake-up.

A signal that arrives between checking a flag and waiting for a lock would not end the wait: with a lock instead of the
pipe, one server in thirty slept through a signal right after its first answer.
"""

import math
import os
import select
import signal
from typing import Final

INPUT_ENDED: Final = b"e"
OUTPUT_BROKEN: Final = b"b"
BUILD_FAILED: Final = b"f"
ALL_ANSWERED: Final = b"i"
APP_CLOSED: Final = b"c"
READER_GONE: Final = b"g"
"""The other end of the output was closed; detected by poll, never written to the pipe."""
SIGNALS: Final = {bytes([number]) for number in (signal.SIGTERM, signal.SIGINT)}


class WakeupPipe:
    """Queue of one-byte events for the main thread; a signal is the byte of its number."""

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)  # a signal handler must never block
        self._poll = select.poll()
        self._poll.register(self._read_end, select.POLLIN)

    def watch_reader(self, descriptor: int) -> None:
        """Report READER_GONE, once, when the other end of this descriptor is closed."""
        # With an empty event mask poll still reports POLLERR (pipe without reader) and POLLHUP (socket without peer).
        self._poll.register(descriptor, 0)

    def listen_to_signals(self) -> None:
        """Turn SIGTERM and SIGINT into events. Main thread only."""
        signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        for (number,) in SIGNALS:
            signal.signal(number, lambda *_: None)

    def put(self, event: bytes) -> None:
        """Send an event to the main thread."""
        os.write(self._write_end, event)

    def wait(self, seconds: float | None) -> bytes | None:
        """Wait for the next event; None after `seconds` without one."""
        ready = dict(self._poll.poll(None if seconds is None else math.ceil(seconds * 1000)))
        if self._read_end in ready:
            return os.read(self._read_end, 1)
        # Unregistered, or poll would report it again at once, forever.
        for descriptor in ready:
            self._poll.unregister(descriptor)
        return READER_GONE if ready else None
