"""The thread that looks at the plans."""

import threading

from kaiza.store.trust import plan_watch
from kaiza.store.trust.plan_watch import PlanWatch

DEADLINE = 20


def test_it_looks_again_and_again_until_it_is_stopped(monkeypatch):
    monkeypatch.setattr(plan_watch, "SECONDS", 0)
    looks = threading.Semaphore(0)
    watch = PlanWatch(looks.release, lambda: None)
    watch.start()
    seen = [looks.acquire(timeout=DEADLINE) for _ in range(3)]
    thread = watch._thread
    watch.start()
    watch.stop()

    assert seen == [True] * 3
    assert thread.daemon
    assert not thread.is_alive()
    assert watch._thread is thread


def test_a_session_starts_the_watch_and_closing_the_workspace_ends_it(make_app, workspace):
    app = make_app(workspace)
    (opened,) = app.services.workspaces.values()
    before = opened.plan_watch._thread
    app.call("begin_session", {"role": "WINDSURF"})
    thread = opened.plan_watch._thread
    app.close()

    assert before is None
    assert not thread.is_alive()
