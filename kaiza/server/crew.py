"""Leader and followers: one thread reads, hands the turn on, and does itself what it has read.

So a call that comes alone never changes threads, and while every worker is busy the reader goes on reading.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

Job = Callable[[], None]

WORKERS: Final = 8
"""Threads in all; one of them reads while the others are busy."""

BACKLOG: Final = 32
"""Jobs that may wait for a worker; with that many waiting, nothing more is read."""

SPARE: Final = 24
"""Workers that may take the place of stuck ones."""


class Crew:
    """The threads. `read` blocks for the next job and gives None when there will be no more."""

    def __init__(self, read: Callable[[], Job | None], workers: int = WORKERS, backlog: int = BACKLOG) -> None:
        self._read = read
        self._workers = workers
        self._room = backlog
        self._turn = threading.Lock()
        """Held by whoever reads."""
        self._state = threading.Condition(threading.Lock())
        """Protects what is below; notified when the backlog has room again."""
        self._backlog: deque[Job] = deque()
        self._threads = 0
        self._following = 0
        self._written_off = 0
        self._over = False

    def start(self) -> None:
        """Begin to read."""
        with self._state:
            self._enlist()

    def write_off(self) -> None:
        """A worker is stuck in a call that was answered without it: another takes its place."""
        with self._state:
            self._written_off += 1
            if self._backlog and self._threads < self._allowed():
                self._enlist()

    def take_back(self) -> None:
        """A worker that was written off is done after all."""
        with self._state:
            self._written_off -= 1

    def _allowed(self) -> int:
        return self._workers + min(self._written_off, SPARE)

    def _enlist(self) -> None:
        self._threads += 1
        threading.Thread(target=self._work, name=f"kaiza-{self._threads}", daemon=True).start()

    def _work(self) -> None:
        whole = False
        try:
            while (job := self._next()) is not None:
                job()
            whole = True
        finally:
            with self._state:
                self._threads -= 1
                if not whole:
                    self._enlist()

    def _next(self) -> Job | None:
        with self._state:
            if self._backlog:
                self._state.notify()
                return self._backlog.popleft()
            if self._over or self._threads > self._allowed():
                return None
            self._following += 1
        with self._turn:
            with self._state:
                self._following -= 1
            return self._lead()

    def _lead(self) -> Job | None:
        """Read until there is a job that this thread may do itself."""
        while not self._over and (job := self._read()) is not None:
            if self._followed(job):
                return job
        with self._state:
            self._over = True
            return self._backlog.popleft() if self._backlog else None

    def _followed(self, job: Job) -> bool:
        """Whether somebody else can read meanwhile; else the job waits for a worker, and the reader for room."""
        with self._state:
            if not self._following and self._threads < self._allowed():
                self._enlist()
                return True
            while not self._following and len(self._backlog) >= self._room:
                self._state.wait()
            if not self._following:
                self._backlog.append(job)
            return bool(self._following)
