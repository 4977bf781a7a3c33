import queue
import threading

from doors import until

from kaiza.server.stdio.worker_pool import MAX_QUICK_JOBS, Job, WorkerPool

PATIENCE = 20


class Script:
    """Jobs for a crew: each says that it has begun, and goes on when it is let go."""

    def __init__(self):
        self.asked = queue.SimpleQueue()
        self.began = queue.SimpleQueue()
        self.gates = {}
        self.read = 0

    def put(self, *names):
        for name in names:
            self.gates[name] = threading.Event()
            self.asked.put(name)

    def end(self):
        self.asked.put(None)

    def next(self):
        name = self.asked.get(timeout=PATIENCE)
        self.read += 1
        return None if name is None else Job(lambda: self.run(name), quick=name.startswith("quick"))

    def run(self, name):
        self.began.put((name, threading.current_thread().name))
        assert self.gates[name].wait(PATIENCE)

    def begun(self):
        return self.began.get(timeout=PATIENCE)

    def let_go(self, *names):
        for name in names:
            self.gates[name].set()


def started(workers, backlog=4):
    script = Script()
    crew = WorkerPool(script.next, workers=workers, backlog_limit=backlog)
    crew.start()
    return script, crew


def test_who_reads_a_job_does_it():
    script, _ = started(workers=4)
    script.put("first")
    _, reader = script.begun()
    script.put("second")
    _, other = script.begun()
    script.let_go("first", "second")
    script.end()

    assert reader != other


def test_jobs_run_side_by_side_while_there_are_workers_and_one_goes_on_reading():
    script, _ = started(workers=3)
    script.put("a", "b", "c", "d")
    running = {script.begun()[0], script.begun()[0]}
    script.let_go("a")
    then = script.begun()[0]
    script.let_go("b")
    last = script.begun()[0]
    script.let_go("c", "d")
    script.end()

    assert running == {"a", "b"}
    assert (then, last) == ("c", "d")


def test_a_full_backlog_stops_the_reading_until_there_is_room():
    script, _ = started(workers=2, backlog=2)
    script.put(*"abcdef")
    script.begun()
    until(lambda: script.read == 4)
    before = script.asked.qsize()
    script.let_go(*"abcdef")
    order = [script.begun()[0] for _ in range(5)]
    script.end()

    assert before == 2
    assert sorted(order) == list("bcdef")


def test_a_worker_that_is_written_off_is_replaced_and_taken_back():
    script, crew = started(workers=2)
    script.put("stuck", "next")
    script.begun()
    until(lambda: script.read == 2)
    crew.replace_worker()
    name = script.begun()[0]
    script.let_go("stuck", "next")
    crew.return_worker()
    script.put("after")
    after = script.begun()[0]
    script.let_go("after")
    script.end()

    assert (name, after) == ("next", "after")


def test_the_backlog_is_done_after_the_end_of_input():
    script, _ = started(workers=2)
    script.put("a", "b", "c")
    script.end()
    script.begun()
    script.let_go("a", "b", "c")

    assert [script.begun()[0], script.begun()[0]] == ["b", "c"]


def test_a_quick_job_is_begun_while_every_worker_is_busy_and_the_backlog_is_full():
    script, _ = started(workers=2, backlog=2)
    script.put("a", "b", "c", "quick")
    began = {script.begun()[0], script.begun()[0]}
    script.let_go("a", "b", "c", "quick")
    rest = {script.begun()[0], script.begun()[0]}
    script.end()

    assert (began, rest) == ({"a", "quick"}, {"b", "c"})


def test_quick_jobs_that_are_slow_hold_up_nothing_and_wait_like_others_once_they_are_many():
    script, _ = started(workers=2, backlog=2)
    names = [f"quick {number}" for number in range(MAX_QUICK_JOBS + 2)]
    script.put(*names, "last")
    began = {script.begun()[0] for _ in range(MAX_QUICK_JOBS + 1)}
    until(lambda: script.read == len(names) + 1)
    others = script.began.qsize()
    script.let_go(*names, "last")
    rest = {script.begun()[0], script.begun()[0]}
    script.end()

    assert (began, others) == (set(names[:-1]), 0)
    assert rest == {names[-1], "last"}


def test_quick_jobs_stay_quick_and_others_wait_however_many_there_were():
    script, _ = started(workers=2)
    script.put("a")
    script.begun()
    names = [f"quick {number}" for number in range(3 * MAX_QUICK_JOBS)]
    began = []
    for name in names:
        script.put(name)
        began.append(script.begun()[0])
        script.let_go(name)
    script.put("b", "quick last")
    last = script.begun()[0]
    script.let_go("a", "b", "quick last")
    script.end()

    assert (began, last) == (names, "quick last")


def test_a_job_that_is_dropped_leaves_the_backlog_and_makes_room_for_another():
    script, crew = started(workers=2, backlog=1)
    script.put("running", "waiting", "next")
    script.begun()
    until(lambda: crew._backlog and script.read == 3)
    crew.cancel_job(crew._backlog[0])
    until(lambda: not script.asked.qsize() and len(crew._backlog) == 1)
    script.let_go("running", "waiting", "next")
    after = script.begun()[0]
    script.end()

    assert after == "next"


def test_slow_quick_jobs_leave_a_thread_for_reading_while_the_backlog_is_full():
    script, _ = started(workers=2, backlog=2)
    script.put("a", "b", "c", "quick 1", "quick 2")
    began = {script.begun()[0] for _ in range(3)}
    script.let_go("quick 1", "quick 2")
    script.put("quick 3")
    then = script.begun()[0]
    script.let_go("a", "b", "c", "quick 3")
    rest = [script.begun()[0], script.begun()[0]]
    script.end()

    assert began == {"a", "quick 1", "quick 2"}
    assert then == "quick 3"
    assert rest == ["b", "c"]
