"""Calls end when their time is up: somebody else answers for a worker that does not.

The clock sleeps until the nearest deadline it knows of, so that a call that ends in time costs it nothing.
"""

import threading
import time
from collections.abc import Callable

from kaiza.server.in_flight import Entry


class Clock:
    """Watches the calls that are being made."""

    def __init__(self, on_overdue: Callable[[Entry], None]) -> None:
        self._on_overdue = on_overdue
        self._watched: set[Entry] = set()
        self._until: float | None = None
        self._changed = threading.Condition(threading.Lock())
        """Protects the two above; notified when a deadline is nearer than the one slept for."""
        self._running = False

    def watch(self, entry: Entry) -> None:
        """Tell `on_overdue`, in a thread of its own, should the call still be watched at its deadline."""
        with self._changed:
            self._watched.add(entry)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="kaiza-clock", daemon=True).start()
            elif self._until is None or entry.call.deadline < self._until:
                self._changed.notify()

    def forget(self, entry: Entry) -> None:
        """The call has ended."""
        with self._changed:
            self._watched.discard(entry)

    def _run(self) -> None:
        while True:
            for entry in self._overdue():
                threading.Thread(target=self._on_overdue, args=(entry,), name="kaiza-overdue", daemon=True).start()

    def _overdue(self) -> list[Entry]:
        """Sleep until something may be due; what is."""
        with self._changed:
            self._until = min((entry.call.deadline for entry in self._watched), default=None)
            self._changed.wait(None if self._until is None else max(0.0, self._until - time.monotonic()))
            now = time.monotonic()
            overdue = [entry for entry in self._watched if entry.call.deadline <= now]
            self._watched.difference_update(overdue)
            return overdue
