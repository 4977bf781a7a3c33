"""What the main thread is told, through a pipe: there, a signal that comes between looking and waiting is not lost.

Waiting for a lock instead, one server in thirty slept through a signal that came right after its first answer.
"""

import math
import os
import select
import signal
from typing import Final

END: Final = b"e"
BROKEN: Final = b"b"
FAILED: Final = b"f"
IDLE: Final = b"i"
CLOSED: Final = b"c"
GONE: Final = b"g"
"""The answers have no reader any more; seen on their descriptor, not sent."""
SIGNALS: Final = {bytes([number]) for number in (signal.SIGTERM, signal.SIGINT)}


class News:
    """One-byte messages, the numbers of signals among them."""

    def __init__(self) -> None:
        self._out, self._in = os.pipe()
        os.set_blocking(self._in, False)
        self._ready = select.poll()
        self._ready.register(self._out, select.POLLIN)

    def watch_reader(self, descriptor: int) -> None:
        """GONE is news, once, when the other end of this descriptor is closed.

        Asked for nothing, poll still reports a pipe without a reader (POLLERR) and a socket without a peer (POLLHUP).
        """
        self._ready.register(descriptor, 0)

    def listen_to_signals(self) -> None:
        """From here on a signal is news and nothing else. For the main thread."""
        signal.set_wakeup_fd(self._in, warn_on_full_buffer=False)
        for (number,) in SIGNALS:
            signal.signal(number, lambda *_: None)

    def put(self, news: bytes) -> None:
        """Tell the main thread."""
        os.write(self._in, news)

    def next(self, patience: float | None) -> bytes | None:
        """The next message; None where there was none for so many seconds."""
        ready = dict(self._ready.poll(None if patience is None else math.ceil(patience * 1000)))
        if self._out in ready:
            return os.read(self._out, 1)
        for descriptor in ready:
            self._ready.unregister(descriptor)
        return GONE if ready else None
