"""Leader/follower thread pool: one thread reads a job and runs it itself; if that takes long, another reads on.

A call that comes alone never changes threads, which saves a wake-up on each side. While all workers are busy, there is
still one thread that reads.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

from kaiza.server.call_queue import CallQueue, Lane, QueuedCall


class Job(QueuedCall):
    """Work for one thread."""

    def __init__(self, run: Callable[[], None], lane: Lane, is_held: Callable[[], bool] = lambda: False) -> None:
        super().__init__(lane)
        self.run: Final = run
        self.is_held: Final = is_held
        """Whether it has to wait for another job; asked again at `release_held`."""


IDLE_THREADS: Final = 8
"""Threads that are kept while there is nothing for them to do."""

LEADER_SECONDS: Final = 0.005
"""A leader that is longer than this in one job loses the lead, so that another thread reads on."""

IDLE_SECONDS: Final = 1.0
"""After this time without a job, the leader is not watched until the next one."""


class WorkerPool:
    """Threads that read and run jobs. `read_job` blocks for the next job, and returns None at the end of input."""

    def __init__(self, read_job: Callable[[], Job | None]) -> None:
        self._read_job = read_job
        self._leader_lock = threading.Lock()
        """Held by the leader, while it reads and while it runs the job; released for it if that takes long."""
        self._lock = threading.Lock()
        """Protects all members below."""
        self._watch_resumed = threading.Condition(self._lock)
        """Notified when the leader is to be watched again."""
        self._queue: CallQueue[Job] = CallQueue()
        self._held: list[Job] = []
        self._leader: object = None
        self._busy_since = 0.0
        """When the leader began its current job; 0.0 while it reads."""
        self._last_job_at = 0.0
        self._is_watching = True
        self._thread_count = 0
        self._follower_count = 0
        self._is_closed = False

    def start(self) -> None:
        """Start reading."""
        with self._lock:
            self._last_job_at = time.monotonic()
            self._start_thread()
        threading.Thread(target=self._watch, name="kaiza-lead", daemon=True).start()

    def release_stuck(self, job: Job) -> None:
        """Run another job beside one that is stuck in a call that has expired."""
        with self._lock:
            self._queue.release_stuck(job)
            self._start_waiting()

    def release_held(self) -> None:
        """Run the jobs that are not held any more."""
        with self._lock:
            held, self._held = self._held, []
            for job in held:
                (self._held.append if job.is_held() else self._queue.add)(job)
            self._start_waiting()

    def cancel_job(self, job: Job) -> None:
        """Drop a job that has not begun."""
        with self._lock:
            self._queue.remove(job)
            if job in self._held:
                self._held.remove(job)

    def _start_waiting(self) -> None:
        """Start a thread for each job that may run."""
        while (job := self._queue.take(time.monotonic())) is not None:
            self._start_thread(job)
        self._resume_watch()

    def _start_thread(self, job: Job | None = None) -> None:
        self._thread_count += 1
        name = f"kaiza-{self._thread_count}"
        threading.Thread(target=self._run_worker, args=(job,), name=name, daemon=True).start()

    def _run_worker(self, job: Job | None) -> None:
        is_finished = False
        try:
            if job is not None:
                self._run_job(job)
            while self._work_once():
                continue
            is_finished = True
        finally:
            with self._lock:
                self._thread_count -= 1
                if not is_finished:  # a bug ended the thread; its traceback is printed, and another takes its place
                    self._start_thread()

    def _work_once(self) -> bool:
        """Run a job that waited, or become a follower; False if this thread is surplus."""
        with self._lock:
            job = self._queue.take(time.monotonic())
            if job is None:
                if self._is_closed or (self._follower_count and self._thread_count > IDLE_THREADS):
                    return False
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
                self._queue.finish(job)

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
        """The job that this thread is to run, which may be another one whose turn it is; None if all have to wait."""
        with self._lock:
            if job.is_held():
                self._held.append(job)
                return None
            self._queue.add(job)
            now = time.monotonic()
            next_job = self._queue.take(now)
            if next_job is not None:
                self._busy_since = now
            self._start_waiting()
            return next_job

    def _resume_watch(self) -> None:
        self._last_job_at = time.monotonic()
        if not self._is_watching:
            self._is_watching = True
            self._watch_resumed.notify()

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

    def _watch(self) -> None:
        """Take the lead from a leader that is busy for LEADER_SECONDS, and start jobs that wait for stuck ones."""
        while True:
            time.sleep(LEADER_SECONDS)
            with self._lock:
                now = time.monotonic()
                if self._busy_since and now - self._busy_since >= LEADER_SECONDS:
                    self._leader, self._busy_since = None, 0.0
                    if not self._follower_count:
                        self._start_thread()
                    self._leader_lock.release()
                if self._queue.is_waiting():
                    self._start_waiting()
                elif not self._busy_since and now - self._last_job_at > IDLE_SECONDS:
                    self._is_watching = False
                    self._watch_resumed.wait_for(lambda: self._is_watching)
