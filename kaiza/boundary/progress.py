"""Reports a tool's progress to the client: a few times a second, until the call is answered. Never fails the call."""

import time

from kaiza.boundary.call import Call

PER_SECOND = 5


class ProgressReporter:
    """Progress of one call. Reports above the rate, or behind an earlier one, are dropped."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._send = call.call_request.report_progress
        self._last_done = -1
        self._second_ends = 0.0
        self._left = 0

    def report(self, done: int, total: int | None, /) -> None:
        """Report how many items of how many are processed."""
        if self._send is None or done <= self._last_done or self._call.is_claimed or not self._is_within_rate():
            return
        self._last_done = done
        try:
            self._send(done, total)
        except Exception:  # noqa: BLE001  the transport is broken; the tool must not fail because of it
            self._send = None

    def _is_within_rate(self) -> bool:
        now = time.monotonic()
        if now >= self._second_ends:
            self._second_ends, self._left = now + 1, PER_SECOND
        self._left -= 1
        return self._left >= 0
