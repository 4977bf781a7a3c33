"""Looks at the plans every second while a server runs, so that a draft is seen before a person approves it."""

import threading
from collections.abc import Callable

SECONDS = 1.0


class PlanWatch:
    """Daemon thread that calls `look`, and then `tidy`, every second until it is stopped."""

    def __init__(self, look: Callable[[], None], tidy: Callable[[], None]) -> None:
        self._look = look
        self._tidy = tidy
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._start_lock = threading.Lock()

    def start(self) -> None:
        """Start looking, unless it was started or stopped before."""
        with self._start_lock:
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._run, name="plan-watch", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Stop, and wait until a look that is under way has ended."""
        with self._start_lock:
            self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(SECONDS):
            self._look()
            self._tidy()
