"""Deadline watcher: reports calls that are still running at their deadline.

Its thread sleeps until the nearest deadline, so that a call that ends in time does not wake it.
"""

import threading
import time
from collections.abc import Callable

from kaiza.server.stdio.pending_requests import PendingRequest


class DeadlineWatcher:
    """Calls `on_overdue` for every watched call that passes its deadline."""

    def __init__(self, on_overdue: Callable[[PendingRequest], None]) -> None:
        self._on_overdue = on_overdue
        self._watched: set[PendingRequest] = set()
        self._wake_at: float | None = None
        # Protects all members; notified when a new deadline is nearer than the one slept for.
        self._condition = threading.Condition(threading.Lock())
        self._is_running = False

    def watch(self, entry: PendingRequest) -> None:
        """Call `on_overdue`, in a new thread, if the call is still watched at its deadline."""
        with self._condition:
            self._watched.add(entry)
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="kaiza-clock", daemon=True).start()
            elif self._wake_at is None or entry.call.deadline < self._wake_at:
                self._condition.notify()

    def unwatch(self, entry: PendingRequest) -> None:
        """Stop watching a call that has ended."""
        with self._condition:
            self._watched.discard(entry)

    def _run(self) -> None:
        while True:
            for entry in self._wait_for_overdue():
                # A thread each: expiring a call writes its record, and a slow disk must not delay other deadlines.
                threading.Thread(target=self._on_overdue, args=(entry,), name="kaiza-overdue", daemon=True).start()

    def _wait_for_overdue(self) -> list[PendingRequest]:
        """Sleep until the nearest deadline or a notification; the calls that are overdue then, no longer watched."""
        with self._condition:
            self._wake_at = min((entry.call.deadline for entry in self._watched), default=None)
            self._condition.wait(None if self._wake_at is None else max(0.0, self._wake_at - time.monotonic()))
            now = time.monotonic()
            overdue = [entry for entry in self._watched if entry.call.deadline <= now]
            self._watched.difference_update(overdue)
            return overdue
