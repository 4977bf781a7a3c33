"""What the main thread is told, through a pipe: there, a signal that comes between looking and waiting is not lost.

Waiting for a lock instead, one server in thirty slept through a signal that came right after its first answer.
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
"""The answers have no reader any more; seen on their descriptor, not sent."""
SIGNALS: Final = {bytes([number]) for number in (signal.SIGTERM, signal.SIGINT)}


class WakeupPipe:
    """One-byte messages, the numbers of signals among them."""

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        self._poll = select.poll()
        self._poll.register(self._read_end, select.POLLIN)

    def watch_reader(self, descriptor: int) -> None:
        """GONE is news, once, when the other end of this descriptor is closed.

        Asked for nothing, poll still reports a pipe without a reader (POLLERR) and a socket without a peer (POLLHUP).
        """
        self._poll.register(descriptor, 0)

    def listen_to_signals(self) -> None:
        """From here on a signal is news and nothing else. For the main thread."""
        signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        for (number,) in SIGNALS:
            signal.signal(number, lambda *_: None)

    def put(self, news: bytes) -> None:
        """Tell the main thread."""
        os.write(self._write_end, news)

    def wait(self, patience: float | None) -> bytes | None:
        """The next message; None where there was none for so many seconds."""
        ready = dict(self._poll.poll(None if patience is None else math.ceil(patience * 1000)))
        if self._read_end in ready:
            return os.read(self._read_end, 1)
        for descriptor in ready:
            self._poll.unregister(descriptor)
        return READER_GONE if ready else None
