import queue
import threading

from doors import until

from kaiza.server.stdio.worker_pool import MAX_QUICK_JOBS, Job, WorkerPool

TIMEOUT = 20


class Script:
    """Jobs for a pool: each reports that it has begun, and runs until it is released."""

    def __init__(self):
        self.input = queue.SimpleQueue()
        self.began = queue.SimpleQueue()
        self.gates = {}
        self.read_count = 0

    def put(self, *names):
        for name in names:
            self.gates[name] = threading.Event()
            self.input.put(name)

    def end(self):
        self.input.put(None)

    def read_job(self):
        name = self.input.get(timeout=TIMEOUT)
        self.read_count += 1
        return None if name is None else Job(lambda: self.run(name), quick=name.startswith("quick"))

    def run(self, name):
        self.began.put((name, threading.current_thread().name))
        assert self.gates[name].wait(TIMEOUT)

    def wait_begun(self):
        """The next job that begins, and its thread."""
        return self.began.get(timeout=TIMEOUT)

    def release(self, *names):
        for name in names:
            self.gates[name].set()


def start_pool(workers, backlog=4):
    script = Script()
    pool = WorkerPool(script.read_job, workers=workers, backlog_limit=backlog)
    pool.start()
    return script, pool


def test_a_second_job_runs_on_another_thread_while_the_first_runs():
    script, _ = start_pool(workers=4)
    script.put("first")
    _, first = script.wait_begun()
    script.put("second")
    _, second = script.wait_begun()
    script.release("first", "second")
    script.end()

    assert first != second


def test_jobs_run_concurrently_up_to_the_number_of_workers():
    script, _ = start_pool(workers=3)
    script.put("a", "b", "c", "d")
    running = {script.wait_begun()[0], script.wait_begun()[0]}
    script.release("a")
    third = script.wait_begun()[0]
    script.release("b")
    last = script.wait_begun()[0]
    script.release("c", "d")
    script.end()

    assert running == {"a", "b"}
    assert (third, last) == ("c", "d")


def test_a_full_backlog_stops_reading_until_there_is_room():
    script, _ = start_pool(workers=2, backlog=2)
    script.put(*"abcdef")
    script.wait_begun()
    until(lambda: script.read_count == 4)
    unread = script.input.qsize()
    script.release(*"abcdef")
    order = [script.wait_begun()[0] for _ in range(5)]
    script.end()

    assert unread == 2
    assert sorted(order) == list("bcdef")


def test_a_stuck_worker_is_replaced_until_it_returns():
    script, pool = start_pool(workers=2)
    script.put("stuck", "next")
    script.wait_begun()
    until(lambda: script.read_count == 2)
    pool.replace_worker()
    name = script.wait_begun()[0]
    script.release("stuck", "next")
    pool.return_worker()
    script.put("after")
    after = script.wait_begun()[0]
    script.release("after")
    script.end()

    assert (name, after) == ("next", "after")


def test_the_backlog_is_finished_after_the_end_of_input():
    script, _ = start_pool(workers=2)
    script.put("a", "b", "c")
    script.end()
    script.wait_begun()
    script.release("a", "b", "c")

    assert [script.wait_begun()[0], script.wait_begun()[0]] == ["b", "c"]


def test_a_quick_job_starts_while_all_workers_are_busy_and_the_backlog_is_full():
    script, _ = start_pool(workers=2, backlog=2)
    script.put("a", "b", "c", "quick")
    began = {script.wait_begun()[0], script.wait_begun()[0]}
    script.release("a", "b", "c", "quick")
    rest = {script.wait_begun()[0], script.wait_begun()[0]}
    script.end()

    assert (began, rest) == ({"a", "quick"}, {"b", "c"})


def test_slow_quick_jobs_do_not_block_others_and_queue_beyond_their_limit():
    script, _ = start_pool(workers=2, backlog=2)
    names = [f"quick {number}" for number in range(MAX_QUICK_JOBS + 2)]
    script.put(*names, "last")
    began = {script.wait_begun()[0] for _ in range(MAX_QUICK_JOBS + 1)}
    until(lambda: script.read_count == len(names) + 1)
    others = script.began.qsize()
    script.release(*names, "last")
    rest = {script.wait_begun()[0], script.wait_begun()[0]}
    script.end()

    assert (began, others) == (set(names[:-1]), 0)
    assert rest == {names[-1], "last"}


def test_finished_quick_jobs_do_not_count_against_the_limits():
    script, _ = start_pool(workers=2)
    script.put("a")
    script.wait_begun()
    names = [f"quick {number}" for number in range(3 * MAX_QUICK_JOBS)]
    began = []
    for name in names:
        script.put(name)
        began.append(script.wait_begun()[0])
        script.release(name)
    script.put("b", "quick last")
    last = script.wait_begun()[0]
    script.release("a", "b", "quick last")
    script.end()

    assert (began, last) == (names, "quick last")


def test_a_cancelled_job_leaves_the_backlog_and_makes_room():
    script, pool = start_pool(workers=2, backlog=1)
    script.put("running", "waiting", "next")
    script.wait_begun()
    until(lambda: pool._backlog and script.read_count == 3)
    pool.cancel_job(pool._backlog[0])
    until(lambda: not script.input.qsize() and len(pool._backlog) == 1)
    script.release("running", "waiting", "next")
    after = script.wait_begun()[0]
    script.end()

    assert after == "next"


def test_slow_quick_jobs_leave_a_thread_for_reading_while_the_backlog_is_full():
    script, _ = start_pool(workers=2, backlog=2)
    script.put("a", "b", "c", "quick 1", "quick 2")
    began = {script.wait_begun()[0] for _ in range(3)}
    script.release("quick 1", "quick 2")
    script.put("quick 3")
    third = script.wait_begun()[0]
    script.release("a", "b", "c", "quick 3")
    rest = [script.wait_begun()[0], script.wait_begun()[0]]
    script.end()

    assert began == {"a", "quick 1", "quick 2"}
    assert third == "quick 3"
    assert rest == ["b", "c"]
