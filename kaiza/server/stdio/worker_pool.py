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

MAX_BACKLOG: Final = 64
"""Jobs that may wait for a worker; with that many waiting, nothing more is read."""

MAX_QUICK_JOBS: Final = 4
"""Quick jobs at a time, beside all others; one more, should they be slow after all, is a job like any other."""

MAX_REPLACEMENTS: Final = 24
"""Workers that may take the place of stuck ones."""

LEADER_SECONDS: Final = 0.005
"""After so many seconds with one call, the reader's turn goes to somebody else."""

IDLE_SECONDS: Final = 1.0
"""After so many seconds without a call, nobody watches the turn until the next one."""


class WorkerPool:
    """The threads. `read` blocks for the next job and gives None when there will be no more."""

    def __init__(self, read: Callable[[], Job | None], workers: int = WORKERS, backlog: int = MAX_BACKLOG) -> None:
        self._read_job = read
        self._workers = workers - 1
        self._backlog_limit = backlog
        self._leader_lock = threading.Lock()
        """Held by whoever reads, or is doing what it has just read."""
        self._lock = threading.Lock()
        """Protects what is below."""
        self._room_available = threading.Condition(self._lock)
        self._watch_resumed = threading.Condition(self._lock)
        """Notified when the backlog has room again, and when the turn is to be watched again."""
        self._backlog: deque[Job] = deque()
        self._leader: object = None
        self._busy_since = 0.0
        """When the leader began with the call it is at; 0.0 while it reads."""
        self._last_call = 0.0
        self._is_watching = True
        self._thread_count = 0
        self._follower_count = 0
        self._running_count = 0
        self._quick_count = 0
        """Quick jobs that are being done; not among those running."""
        self._replaced_count = 0
        self._is_closed = False

    def start(self) -> None:
        """Begin to read."""
        with self._lock:
            self._last_call = time.monotonic()
            self._start_thread()
        threading.Thread(target=self._watch_leader, name="kaiza-turn", daemon=True).start()

    def replace_worker(self) -> None:
        """A worker is stuck in a call that was answered without it: another takes its place."""
        with self._lock:
            self._replaced_count += 1
            if self._backlog and self._thread_count <= self._thread_limit():
                self._start_thread()

    def return_worker(self) -> None:
        """A worker that was written off is done after all."""
        with self._lock:
            self._replaced_count -= 1

    def cancel_job(self, job: Job) -> None:
        """A job needs no worker any more; where it still waited, there is room for another."""
        with self._lock:
            if job in self._backlog:
                self._backlog.remove(job)
                self._room_available.notify()

    def _call_limit(self) -> int:
        """So many calls at a time, beside the quick ones."""
        return self._workers + min(self._replaced_count, MAX_REPLACEMENTS)

    def _thread_limit(self) -> int:
        """So many threads for calls; one thread more may read meanwhile."""
        return self._call_limit() + self._quick_count

    def _start_thread(self) -> None:
        self._thread_count += 1
        threading.Thread(target=self._run_worker, name=f"kaiza-{self._thread_count}", daemon=True).start()

    def _run_worker(self) -> None:
        whole = False
        try:
            while self._work_once():
                continue
            whole = True
        finally:
            with self._lock:
                self._thread_count -= 1
                if not whole:
                    self._start_thread()

    def _work_once(self) -> bool:
        """Do what waits, else take a turn at reading; False where this thread is not needed any more."""
        with self._lock:
            job = self._backlog.popleft() if self._backlog else None
            if job is not None:
                self._running_count += 1
                self._room_available.notify()
            elif self._is_closed or self._thread_count > self._thread_limit() + 1:
                return False
            else:
                self._follower_count += 1
        if job is None:
            return self._run_as_leader()
        self._run_job(job)
        return True

    def _run_job(self, job: Job) -> None:
        try:
            job.run()
        finally:
            with self._lock:
                if job.quick:
                    self._quick_count -= 1
                else:
                    self._running_count -= 1

    def _run_as_leader(self) -> bool:
        """Read and do, until somebody else has the turn or nothing more will come."""
        self._leader_lock.acquire()  # whoever watches may let go of it for us
        me = object()
        with self._lock:
            self._follower_count -= 1
            self._leader = me
        try:
            while not self._is_closed and (heard := self._read_job()) is not None:
                job = self._admit_job(heard)
                if job is None:
                    continue
                self._run_job(job)
                if not self._is_still_leader(me):
                    return True
            with self._lock:
                self._is_closed = True
        finally:
            self._release_lead(me)
        return True

    def _admit_job(self, job: Job) -> Job | None:
        """The job, if this thread is to do it; while all are busy it waits for one, and the reader for room.

        Behind others that wait it waits too: their worker is on its way, and one thread has to be left for reading.
        """
        with self._lock:
            if job.quick and self._quick_count < MAX_QUICK_JOBS:
                self._quick_count += 1
            elif self._enqueue_if_busy(job):
                return None
            else:
                job = job._replace(quick=False)
                self._running_count += 1
            self._busy_since = self._last_call = time.monotonic()
            if not self._is_watching:
                self._is_watching = True
                self._watch_resumed.notify()
            return job

    def _enqueue_if_busy(self, job: Job) -> bool:
        """Whether the job was put into the backlog, once that has room."""
        while len(self._backlog) >= self._backlog_limit:
            self._room_available.wait()
        waits = bool(self._backlog) or self._running_count >= self._call_limit()
        if waits:
            self._backlog.append(job._replace(quick=False))
        return waits

    def _is_still_leader(self, me: object) -> bool:
        with self._lock:
            mine = self._leader is me
            if mine:
                self._busy_since = 0.0
            return mine

    def _release_lead(self, me: object) -> None:
        with self._lock:
            if self._leader is me:
                self._leader, self._busy_since = None, 0.0
                self._leader_lock.release()

    def _watch_leader(self) -> None:
        """Give the turn to another when the leader is long at one call."""
        while True:
            time.sleep(LEADER_SECONDS)
            with self._lock:
                now = time.monotonic()
                if self._busy_since and now - self._busy_since >= LEADER_SECONDS:
                    self._leader, self._busy_since = None, 0.0
                    if not self._follower_count and self._thread_count <= self._thread_limit():
                        self._start_thread()
                    self._leader_lock.release()
                elif not self._busy_since and now - self._last_call > IDLE_SECONDS:
                    self._is_watching = False
                    self._watch_resumed.wait_for(lambda: self._is_watching)
