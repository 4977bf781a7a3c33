"""Counts the files that a plan's scope matches, for the record that seals the plan. A count is whole or not there.

A large workspace is counted in the background: a million files take half a minute, and no call waits for that.
"""

import threading
import time
from collections.abc import Callable

from kaiza.domain import errors
from kaiza.domain.plans.plan import Plan
from kaiza.store.files.confined_root import ConfinedRoot

MAX_FOREGROUND_ENTRIES = 500
"""Files and directories of a workspace that is counted at once, in about ten milliseconds."""
_FOREGROUND_SECONDS = 1.0
# Between its bursts the count lets calls run: they share one interpreter.
_BURST_SECONDS = 0.002
_PAUSE_SECONDS = 0.004
_STOP_SECONDS = 1.0


class ScopeCounts:
    """Counts of one workspace; those in the background have a thread each, of which a plan needs one, once."""

    def __init__(self, root: ConfinedRoot) -> None:
        self._root = root
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def count_if_small(self, plan: Plan) -> int | None:
        """Number of files in scope; None if the workspace is too large to count them at once."""
        from kaiza.store.documents import scope_preview  # noqa: PLC0415  most processes seal no plan

        if scope_preview.has_more_entries(self._root, MAX_FOREGROUND_ENTRIES):
            return None
        deadline = time.monotonic() + _FOREGROUND_SECONDS
        return scope_preview.count_files(plan, self._root, lambda: time.monotonic() > deadline)

    def start(self, plan: Plan, report: Callable[[int], object]) -> None:
        """Count, and report the number unless the count is stopped or fails."""
        thread = threading.Thread(target=self._count, args=(plan, report), name="scope-count", daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """Stop every count, so that the workspace can be closed."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(_STOP_SECONDS)

    def _count(self, plan: Plan, report: Callable[[int], object]) -> None:
        from kaiza.store.documents.scope_preview import count_files  # noqa: PLC0415  as above

        try:
            count = count_files(plan, self._root, self._pause_or_stop())
            if count is not None and not self._stopped.is_set():
                report(count)
        except (OSError, errors.SystemError):
            return  # the seal goes on saying that nothing was counted

    def _pause_or_stop(self) -> Callable[[], bool]:
        """Function that says whether to stop; it pauses now and then."""
        burst_end = time.monotonic() + _BURST_SECONDS

        def pause_or_stop() -> bool:
            nonlocal burst_end
            if time.monotonic() < burst_end:
                return False
            is_stopped = self._stopped.wait(_PAUSE_SECONDS)
            burst_end = time.monotonic() + _BURST_SECONDS
            return is_stopped

        return pause_or_stop
