"""Leader and followers: one thread reads, and does itself what it has read; if that takes long, another reads on.

So a call that comes alone never changes threads, nothing is handed over that is done in a moment, and while every
worker is busy the reader goes on reading.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple


class Job(NamedTuple):
    """Something to do; `quick`: it takes a moment, and waits behind no other."""

    run: Callable[[], None]
    quick: bool = False


WORKERS: Final = 8
"""Threads in all; one of them reads while the others are busy."""

BACKLOG: Final = 64
"""Jobs that may wait for a worker; with that many waiting, nothing more is read."""

QUICK: Final = 4
"""Quick jobs at a time, beside all others; one more, should they be slow after all, is a job like any other."""

SPARE: Final = 24
"""Workers that may take the place of stuck ones."""

PATIENCE: Final = 0.005
"""After so many seconds with one call, the reader's turn goes to somebody else."""

IDLE: Final = 1.0
"""After so many seconds without a call, nobody watches the turn until the next one."""


class Crew:
    """The threads. `read` blocks for the next job and gives None when there will be no more."""

    def __init__(self, read: Callable[[], Job | None], workers: int = WORKERS, backlog: int = BACKLOG) -> None:
        self._read = read
        self._workers = workers - 1
        self._room = backlog
        self._turn = threading.Lock()
        """Held by whoever reads, or is doing what it has just read."""
        self._state = threading.Lock()
        """Protects what is below."""
        self._has_room = threading.Condition(self._state)
        self._is_wanted = threading.Condition(self._state)
        """Notified when the backlog has room again, and when the turn is to be watched again."""
        self._backlog: deque[Job] = deque()
        self._leader: object = None
        self._since = 0.0
        """When the leader began with the call it is at; 0.0 while it reads."""
        self._last = 0.0
        self._watched = True
        self._threads = 0
        self._following = 0
        self._running = 0
        self._quick = 0
        """Quick jobs that are being done; not among those running."""
        self._written_off = 0
        self._over = False

    def start(self) -> None:
        """Begin to read."""
        with self._state:
            self._last = time.monotonic()
            self._enlist()
        threading.Thread(target=self._watch, name="kaiza-turn", daemon=True).start()

    def write_off(self) -> None:
        """A worker is stuck in a call that was answered without it: another takes its place."""
        with self._state:
            self._written_off += 1
            if self._backlog and self._threads <= self._needed():
                self._enlist()

    def take_back(self) -> None:
        """A worker that was written off is done after all."""
        with self._state:
            self._written_off -= 1

    def drop(self, job: Job) -> None:
        """A job needs no worker any more; where it still waited, there is room for another."""
        with self._state:
            if job in self._backlog:
                self._backlog.remove(job)
                self._has_room.notify()

    def _allowed(self) -> int:
        """So many calls at a time, beside the quick ones."""
        return self._workers + min(self._written_off, SPARE)

    def _needed(self) -> int:
        """So many threads for calls; one thread more may read meanwhile."""
        return self._allowed() + self._quick

    def _enlist(self) -> None:
        self._threads += 1
        threading.Thread(target=self._work, name=f"kaiza-{self._threads}", daemon=True).start()

    def _work(self) -> None:
        whole = False
        try:
            while self._carry_on():
                continue
            whole = True
        finally:
            with self._state:
                self._threads -= 1
                if not whole:
                    self._enlist()

    def _carry_on(self) -> bool:
        """Do what waits, else take a turn at reading; False where this thread is not needed any more."""
        with self._state:
            job = self._backlog.popleft() if self._backlog else None
            if job is not None:
                self._running += 1
                self._has_room.notify()
            elif self._over or self._threads > self._needed() + 1:
                return False
            else:
                self._following += 1
        if job is None:
            return self._lead()
        self._do(job)
        return True

    def _do(self, job: Job) -> None:
        try:
            job.run()
        finally:
            with self._state:
                if job.quick:
                    self._quick -= 1
                else:
                    self._running -= 1

    def _lead(self) -> bool:
        """Read and do, until somebody else has the turn or nothing more will come."""
        self._turn.acquire()  # whoever watches may let go of it for us
        me = object()
        with self._state:
            self._following -= 1
            self._leader = me
        try:
            while not self._over and (heard := self._read()) is not None:
                job = self._begun(heard)
                if job is None:
                    continue
                self._do(job)
                if not self._still_leads(me):
                    return True
            with self._state:
                self._over = True
        finally:
            self._resign(me)
        return True

    def _begun(self, job: Job) -> Job | None:
        """The job, if this thread is to do it; while all are busy it waits for one, and the reader for room.

        Behind others that wait it waits too: their worker is on its way, and one thread has to be left for reading.
        """
        with self._state:
            if job.quick and self._quick < QUICK:
                self._quick += 1
            elif self._waits(job):
                return None
            else:
                job = job._replace(quick=False)
                self._running += 1
            self._since = self._last = time.monotonic()
            if not self._watched:
                self._watched = True
                self._is_wanted.notify()
            return job

    def _waits(self, job: Job) -> bool:
        """Whether the job was put into the backlog, once that has room."""
        while len(self._backlog) >= self._room:
            self._has_room.wait()
        waits = bool(self._backlog) or self._running >= self._allowed()
        if waits:
            self._backlog.append(job._replace(quick=False))
        return waits

    def _still_leads(self, me: object) -> bool:
        with self._state:
            mine = self._leader is me
            if mine:
                self._since = 0.0
            return mine

    def _resign(self, me: object) -> None:
        with self._state:
            if self._leader is me:
                self._leader, self._since = None, 0.0
                self._turn.release()

    def _watch(self) -> None:
        """Give the turn to another when the leader is long at one call."""
        while True:
            time.sleep(PATIENCE)
            with self._state:
                now = time.monotonic()
                if self._since and now - self._since >= PATIENCE:
                    self._leader, self._since = None, 0.0
                    if not self._following and self._threads <= self._needed():
                        self._enlist()
                    self._turn.release()
                elif not self._since and now - self._last > IDLE:
                    self._watched = False
                    self._is_wanted.wait_for(lambda: self._watched)
