import queue
import threading

from doors import until

from kaiza.server.call_queue import MAX_STUCK, READS, SCANS
from kaiza.server.stdio.worker_pool import IDLE_THREADS, Job, WorkerPool

TIMEOUT = 20


class Script:
    """Jobs for a pool: each reports that it has begun, and runs until it is released."""

    def __init__(self):
        self.input = queue.SimpleQueue()
        self.began = queue.SimpleQueue()
        self.gates = {}
        self.jobs = {}
        self.held = set()
        self.read_count = 0
        self.pool = WorkerPool(self.read_job)
        self.pool.start()

    def put(self, *names):
        for name in names:
            self.gates[name] = threading.Event()
            lane = READS if name.startswith("read") else SCANS
            self.jobs[name] = Job(lambda name=name: self.run(name), lane, lambda name=name: name in self.held)
            self.input.put(name)

    def end(self):
        self.input.put(None)

    def read_job(self):
        name = self.input.get(timeout=TIMEOUT)
        self.read_count += 1
        return self.jobs.get(name)

    def run(self, name):
        self.began.put((name, threading.current_thread().name))
        assert self.gates[name].wait(TIMEOUT)

    def wait_begun(self, count=1):
        """The next jobs that begin."""
        return {self.began.get(timeout=TIMEOUT)[0] for _ in range(count)}

    def release(self, *names):
        for name in names:
            self.gates[name].set()


def names(count, kind="scan"):
    return [f"{kind} {number}" for number in range(count)]


def test_a_second_job_runs_on_another_thread_while_the_first_runs():
    script = Script()
    script.put("first")
    _, first = script.began.get(timeout=TIMEOUT)
    script.put("second")
    _, second = script.began.get(timeout=TIMEOUT)
    script.release("first", "second")
    script.end()

    assert first != second


def test_jobs_of_a_lane_run_at_the_same_time_up_to_its_places():
    script = Script()
    running, waiting = names(SCANS.places), ["a", "b"]
    script.put(*running, *waiting)
    began = script.wait_begun(SCANS.places)
    until(lambda: script.read_count == SCANS.places + 2)
    script.release(running[0])
    third = script.wait_begun()
    script.release(running[1])
    last = script.wait_begun()
    script.release(*running, *waiting)
    script.end()

    assert began == set(running)
    assert (third, last) == ({"a"}, {"b"})


def test_a_stuck_job_makes_room_until_it_ends():
    script = Script()
    running = names(SCANS.places)
    script.put(*running, "next", "after")
    script.wait_begun(SCANS.places)
    until(lambda: script.read_count == SCANS.places + 2)
    script.pool.release_stuck(script.jobs[running[0]])
    beside = script.wait_begun()
    script.release(running[0], "next")
    after = script.wait_begun()
    script.release(*running, "after")
    script.end()

    assert (beside, after) == ({"next"}, {"after"})


def test_waiting_jobs_are_run_after_the_end_of_input():
    script = Script()
    jobs = names(3 * SCANS.places)
    script.put(*jobs)
    script.end()
    script.release(*jobs)

    assert script.wait_begun(len(jobs)) == set(jobs)


def test_a_small_job_starts_while_any_number_of_large_ones_wait():
    script = Script()
    scans = names(100)
    script.put(*scans)
    script.wait_begun(SCANS.places)
    script.put("read")
    began = script.wait_begun()
    script.release(*scans, "read")
    rest = script.wait_begun(len(scans) - SCANS.places)
    script.end()

    assert began == {"read"}
    assert len(rest) == len(scans) - SCANS.places


def test_small_jobs_that_do_not_end_soon_make_room_up_to_a_limit():
    script = Script()
    reads = names(READS.places + MAX_STUCK + 1, "read")
    script.put(*reads, "scan")
    began = script.wait_begun(READS.places + MAX_STUCK + 1)
    until(lambda: script.read_count == len(reads) + 1)
    script.release(*reads, "scan")
    last = script.wait_begun()
    script.end()

    assert (began, last) == ({*reads[:-1], "scan"}, {reads[-1]})


def test_a_job_that_is_held_takes_no_place_until_it_is_released():
    script = Script()
    script.held |= set(names(20))
    script.put(*names(20), "scan", "read")
    began = script.wait_begun(2)
    script.held.clear()
    script.pool.release_held()
    script.release(*names(20), "scan", "read")
    rest = script.wait_begun(20)
    script.end()

    assert (began, rest) == ({"scan", "read"}, set(names(20)))


def test_a_cancelled_job_is_not_run():
    script = Script()
    running = names(SCANS.places)
    script.held.add("held")
    script.put("held", *running, "waiting", "next")
    script.wait_begun(SCANS.places)
    until(lambda: script.read_count == SCANS.places + 3)
    script.held.clear()
    script.pool.cancel_job(script.jobs["waiting"])
    script.pool.cancel_job(script.jobs["held"])
    script.pool.release_held()
    script.release(*running, "waiting", "next", "held")
    script.end()

    assert script.wait_begun() == {"next"}
    assert script.began.empty()


def test_threads_end_when_there_is_nothing_left_for_them():
    script = Script()
    reads = names(READS.places + MAX_STUCK, "read")
    script.put(*reads)
    script.wait_begun(len(reads))
    script.release(*reads)
    until(lambda: script.pool._thread_count <= IDLE_THREADS)
    script.put("read")
    began = script.wait_begun()
    script.release("read")
    script.end()

    assert began == {"read"}
