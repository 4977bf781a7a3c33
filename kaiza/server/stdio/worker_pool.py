"""Leader/follower thread pool: one thread reads a job and runs it itself; if that takes long, another reads on.

A call that comes alone never changes threads, which saves a wake-up on each side. While all workers are busy, there is
still one thread that reads.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple


class Job(NamedTuple):
    """Work for one thread; `quick`: it is short and need not wait for a worker."""

    run: Callable[[], None]
    quick: bool = False


WORKERS: Final = 8
"""Threads in all; one of them reads while the others are busy."""

MAX_BACKLOG: Final = 64
"""Jobs that may wait for a worker; while the backlog is full, nothing more is read."""

MAX_QUICK_JOBS: Final = 4
"""Quick jobs at a time, in addition to WORKERS; a further one is treated as any other job."""

MAX_REPLACEMENTS: Final = 24
"""Additional workers for stuck ones."""

LEADER_SECONDS: Final = 0.005
"""A leader that is longer than this in one job loses the lead, so that another thread reads on."""

IDLE_SECONDS: Final = 1.0
"""After this time without a job, the leader is not watched until the next one."""


class WorkerPool:
    """Threads that read and run jobs. `read_job` blocks for the next job, and returns None at the end of input."""

    def __init__(
        self, read_job: Callable[[], Job | None], workers: int = WORKERS, backlog_limit: int = MAX_BACKLOG
    ) -> None:
        self._read_job = read_job
        self._workers = workers - 1
        self._backlog_limit = backlog_limit
        self._leader_lock = threading.Lock()
        """Held by the leader, while it reads and while it runs the job; released for it if that takes long."""
        self._lock = threading.Lock()
        """Protects all members below."""
        self._room_available = threading.Condition(self._lock)
        """Notified when a job leaves the backlog."""
        self._watch_resumed = threading.Condition(self._lock)
        """Notified when the leader is to be watched again."""
        self._backlog: deque[Job] = deque()
        self._leader: object = None
        self._busy_since = 0.0
        """When the leader began its current job; 0.0 while it reads."""
        self._last_job_at = 0.0
        self._is_watching = True
        self._thread_count = 0
        self._follower_count = 0
        self._running_count = 0
        """Jobs that are running, without the quick ones."""
        self._quick_count = 0
        self._replaced_count = 0
        self._is_closed = False

    def start(self) -> None:
        """Start reading."""
        with self._lock:
            self._last_job_at = time.monotonic()
            self._start_thread()
        threading.Thread(target=self._watch_leader, name="kaiza-lead", daemon=True).start()

    def replace_worker(self) -> None:
        """Allow one more worker, for one that is stuck in a call that has expired."""
        with self._lock:
            self._replaced_count += 1
            # Above the limit a thread is just finishing a job; it takes from the backlog itself.
            if self._backlog and self._thread_count <= self._thread_limit():
                self._start_thread()

    def return_worker(self) -> None:
        """Note that a replaced worker has finished its call after all."""
        with self._lock:
            self._replaced_count -= 1

    def cancel_job(self, job: Job) -> None:
        """Drop a job that is still in the backlog."""
        with self._lock:
            if job in self._backlog:
                self._backlog.remove(job)
                self._room_available.notify()

    def _call_limit(self) -> int:
        """Jobs that may run at a time, without the quick ones."""
        return self._workers + min(self._replaced_count, MAX_REPLACEMENTS)

    def _thread_limit(self) -> int:
        """Number of threads that may run jobs. One more may read at the same time."""
        return self._call_limit() + self._quick_count

    def _start_thread(self) -> None:
        self._thread_count += 1
        threading.Thread(target=self._run_worker, name=f"kaiza-{self._thread_count}", daemon=True).start()

    def _run_worker(self) -> None:
        is_finished = False
        try:
            while self._work_once():
                continue
            is_finished = True
        finally:
            with self._lock:
                self._thread_count -= 1
                if not is_finished:  # a bug ended the thread; its traceback is printed, and another takes its place
                    self._start_thread()

    def _work_once(self) -> bool:
        """Run a job of the backlog, or become a follower; False if this thread is surplus."""
        with self._lock:
            # Beyond the limit the backlog waits. A thread that has just run a quick job, or was started while one ran,
            # must not take from it: it may be the one that is left for reading.
            job = self._backlog.popleft() if self._backlog and self._running_count < self._call_limit() else None
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
        """Read and run jobs until the lead is lost or the input ends."""
        self._leader_lock.acquire()  # no `with`: the watcher may release it for us
        lead = object()
        with self._lock:
            self._follower_count -= 1
            self._leader = lead
        try:
            while not self._is_closed and (next_job := self._read_job()) is not None:
                job = self._admit_job(next_job)
                if job is None:
                    continue
                self._run_job(job)
                if not self._has_lead(lead):
                    return True
            with self._lock:
                self._is_closed = True
        finally:
            self._release_lead(lead)
        return True

    def _admit_job(self, job: Job) -> Job | None:
        """The job, if this thread is to run it; None if it was put into the backlog."""
        with self._lock:
            if job.quick and self._quick_count < MAX_QUICK_JOBS:
                self._quick_count += 1
            elif self._enqueue_if_busy(job):
                return None
            else:
                job = job._replace(quick=False)
                self._running_count += 1
            self._busy_since = self._last_job_at = time.monotonic()
            if not self._is_watching:
                self._is_watching = True
                self._watch_resumed.notify()
            return job

    def _enqueue_if_busy(self, job: Job) -> bool:
        """Put the job into the backlog if all workers are busy, waiting for room; whether it was."""
        while len(self._backlog) >= self._backlog_limit:
            self._room_available.wait()
        # With a backlog also if a worker is free: it is about to take the first job, and this thread has to read on.
        must_wait = bool(self._backlog) or self._running_count >= self._call_limit()
        if must_wait:
            self._backlog.append(job._replace(quick=False))
        return must_wait

    def _has_lead(self, lead: object) -> bool:
        """Whether this thread still is the leader, which goes back to reading then."""
        with self._lock:
            is_leader = self._leader is lead
            if is_leader:
                self._busy_since = 0.0
            return is_leader

    def _release_lead(self, lead: object) -> None:
        with self._lock:
            if self._leader is lead:
                self._leader, self._busy_since = None, 0.0
                self._leader_lock.release()

    def _watch_leader(self) -> None:
        """Take the lead from a leader that is busy for LEADER_SECONDS, so that another thread reads."""
        while True:
            time.sleep(LEADER_SECONDS)
            with self._lock:
                now = time.monotonic()
                if self._busy_since and now - self._busy_since >= LEADER_SECONDS:
                    self._leader, self._busy_since = None, 0.0
                    # Above the limit a thread is just finishing a job; it becomes a follower itself.
                    if not self._follower_count and self._thread_count <= self._thread_limit():
                        self._start_thread()
                    self._leader_lock.release()
                elif not self._busy_since and now - self._last_job_at > IDLE_SECONDS:
                    self._is_watching = False
                    self._watch_resumed.wait_for(lambda: self._is_watching)
