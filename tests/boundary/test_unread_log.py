"""Calls while a long log without an index is being read: reads work, what is unknown is null, changes are refused."""

import os

import pytest
from agents import person, plan
from logs import log_path
from scenes import records
from unread_logs import another_reads, forget_index, make_long, read_whole, state_path

from kaiza.app import App
from kaiza.boundary import case
from kaiza.store.audit import snapshot
from kaiza.store.disk.state_key import StateKey
from kaiza.store.human_decisions import record_decision

NOT_YET = ("AUDIT_LOG_FAILED", "AUDIT_NOT_VERIFIED_YET")


@pytest.fixture
def root(workspace):
    (workspace / "a.txt").write_text("text\n")
    return os.path.realpath(workspace)


@pytest.fixture
def serve(root, monkeypatch):
    """Starts servers; from the first one on every log is long, and the index is gone."""
    apps = []

    def start(*, forgets=True):
        if forgets:
            forget_index(root)
        make_long(monkeypatch)
        monkeypatch.setattr(case, "MAX_VERIFICATION_WAIT", 0.0)
        apps.append(App([root]))
        return apps[-1]

    yield start
    for app in apps:
        app.close()


def act(root, *calls):
    """Let an earlier server make these calls after `begin_session`; its session."""
    app = App([root])
    try:
        session = app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
        for tool, arguments in calls:
            app.call(tool, arguments)
    finally:
        app.close()
    return session


def refusal(outcome):
    envelope = outcome.envelope or {"error_code": "ok", "invariant_id": None}
    return envelope["error_code"], envelope["invariant_id"]


def write(app, plan_hash, path="src/new.py", **more):
    arguments = {"path": path, "content": "x\n", "plan_hash": plan_hash, **more}
    return refusal(app.call("write_file", arguments))


def wait_until_read(app, root):
    assert app.services.workspaces[root].projection.wait(60) is None


def test_a_session_begins_and_reads_and_what_is_not_known_yet_is_null(root, serve):
    act(root, ("read_file", {"path": "a.txt"}))
    with another_reads(root):
        app = serve()
        begun = app.call("begin_session", {"role": "WINDSURF"}).output
        read = app.call("read_file", {"path": "a.txt"}).output
        status = app.call("session_status", {}).output

    assert (begun["state"], begun["recovered"]) == (None, None)
    assert (begun["audit"]["verdict"], begun["audit"]["checked"]) == ("intact", "tail")
    assert "still being read" in begun["summary"]
    assert read["content"] == "text\n"
    assert (status["state"], status["plan_use"]) == (None, None)
    assert status["counts"] == {"calls": 2, "changes": 0, "refusals": 0}
    wait_until_read(app, root)
    status = app.call("session_status", {}).output
    assert (status["state"], status["plan_use"]) == ("active", [])
    assert status["counts"] == {"calls": 3, "changes": 0, "refusals": 0}


def test_a_change_is_refused_as_unread_before_a_freeze_and_a_lock(root, serve):
    plan_hash = plan(root)
    act(root, ("write_file", {"path": "elsewhere.py", "content": "", "plan_hash": plan_hash}))
    assert person(root, "freeze", "wait") == 0
    with another_reads(root):
        app = serve()
        app.call("begin_session", {"role": "WINDSURF"})
        refused = app.call("write_file", {"path": "../x", "content": "", "plan_hash": plan_hash}).envelope

    assert (refused["error_code"], refused["invariant_id"]) == NOT_YET
    assert refused["cause"]["progress"]["of"] > 0
    assert "still being read" in refused["human_message"]
    wait_until_read(app, root)
    assert write(app, plan_hash) == ("POLICY_VIOLATION", "WORKSPACE_FROZEN")
    assert app.call("session_status", {}).output["state"] == "locked"


@pytest.mark.parametrize(
    ("role", "tool", "arguments"),
    [
        ("ANTIGRAVITY", "save_plan", {"plan_id": "PLAN-2", "content": "x"}),
        ("WINDSURF", "write_report", {"title": "t", "content": "c"}),
        ("WINDSURF", "undo_changes", {"all_of_session": True, "plan_hash": "0" * 64}),
        ("WINDSURF", "write_file", {"path": "a", "content": "", "plan_hash": "0" * 64, "dry_run": True}),
    ],
)
def test_every_tool_that_writes_is_refused_until_the_log_is_read(root, serve, role, tool, arguments):
    act(root)
    with another_reads(root):
        app = serve()
        app.call("begin_session", {"role": role})

        assert refusal(app.call(tool, arguments)) == NOT_YET


def test_a_session_of_an_earlier_server_is_known_once_the_log_is_read(root, serve):
    session = act(root)
    with another_reads(root):
        app = serve()
        early = app.call("read_file", {"path": "a.txt", "session_id": session})

        assert refusal(early) == NOT_YET
        assert "Call begin_session" not in early.envelope["human_message"]
    wait_until_read(app, root)
    assert app.call("read_file", {"path": "a.txt", "session_id": session}).output["content"] == "text\n"
    unknown = {"path": "a.txt", "session_id": "00000000-0000-4000-8000-000000000000"}
    assert refusal(app.call("read_file", unknown))[0] == "SESSION_NOT_INITIALIZED"


def test_used_limits_and_withdrawn_plans_hold_once_the_log_is_read(root, serve):
    used = plan(root, "PLAN-1", more="limits: {operations: 1}\n")
    withdrawn = plan(root, "PLAN-2")
    act(root, ("write_file", {"path": "src/one.py", "content": "x\n", "plan_hash": used}))
    assert person(root, "plan", "revoke", "PLAN-2") == 0
    assert plan(root, "PLAN-2") == withdrawn  # an agent that can write elsewhere puts the approved text back
    with another_reads(root):
        app = serve()
        app.call("begin_session", {"role": "WINDSURF"})
        early = [write(app, each) for each in (used, withdrawn)]
    wait_until_read(app, root)

    assert early == [NOT_YET, NOT_YET]
    assert write(app, used)[1] == "PLAN_LIMIT_REACHED"
    assert write(app, withdrawn) == ("PLAN_NOT_APPROVED", "PLAN_WITHDRAWN")


def test_a_change_waits_for_the_rest_of_the_log_and_goes_ahead(root, serve, monkeypatch):
    plan_hash = plan(root)
    act(root)
    app = serve()
    monkeypatch.setattr(case, "MAX_VERIFICATION_WAIT", 60.0)
    app.call("begin_session", {"role": "WINDSURF"})

    assert write(app, plan_hash) == ("ok", None)
    kinds = [each["kind"] for each in records(root)]
    assert kinds[-3:] == ["plan", "intent", "call"]


def test_a_freeze_recorded_while_the_log_is_read_holds_at_once(root, serve):
    plan_hash = plan(root)
    act(root)
    with another_reads(root):
        app = serve()
        app.call("begin_session", {"role": "WINDSURF"})
        workspace = app.services.workspaces[root]
        record_decision(workspace, "freeze", "Ann", detail={"reason": "wait"})

        assert workspace.audit_state.frozen is not None
    wait_until_read(app, root)
    assert write(app, plan_hash) == ("POLICY_VIOLATION", "WORKSPACE_FROZEN")


def test_what_a_crash_left_is_recovered_before_the_first_change(root, serve):
    plan_hash = plan(root)
    act(root)
    app = App([root])
    app.call("begin_session", {"role": "WINDSURF"})
    workspace = app.services.workspaces[root]
    change = {
        "path": "src/gone.py", "source": None, "operation": "create", "before_hash": None, "after_hash": "1" * 64,
        "size": 1, "lines_added": 1, "lines_removed": 0, "mode": None,
    }  # fmt: skip
    record_intent(workspace, change)
    app.close()
    with another_reads(root):
        app = serve()
        assert app.call("begin_session", {"role": "WINDSURF"}).output["recovered"] is None
    wait_until_read(app, root)
    app.services.workspaces[root].log.background_check.wait(60)

    assert write(app, plan_hash) == ("ok", None)
    tools = [(each["kind"], (each["detail"] or {}).get("result")) for each in records(root)]
    assert ("recovery", "not_applied") in tools
    assert tools.index(("recovery", "not_applied")) < len(tools) - 2


def record_intent(workspace, change):
    from kaiza.domain.audit.record import new_body

    body = new_body(
        "intent", timestamp="2026-11-18T09:00:00.000Z", request_id="lost", tool_name="write_file",
        changes=[change], detail={"live": "no-such-process"},
    )  # fmt: skip
    workspace.log.append(lambda: body, durable=True)


def test_nothing_is_saved_of_a_state_that_is_not_complete(root, serve):
    act(root)
    with another_reads(root):
        app = serve()
        app.call("begin_session", {"role": "WINDSURF"})
        app.call("end_session", {})

        assert not (state_path(root) / "index.json").exists()
        with pytest.raises(ValueError, match=r"^$"):
            snapshot.encode(app.services.workspaces[root].audit_state, app.services.workspaces[root].log.head)
        app.close()
        assert not (state_path(root) / "index.json").exists()


def test_the_complete_state_is_saved_and_equals_that_of_a_whole_reading(root, serve):
    act(root, *[("read_file", {"path": "a.txt"})] * 20)
    app = serve()
    app.call("begin_session", {"role": "WINDSURF"})
    wait_until_read(app, root)
    workspace = app.services.workspaces[root]

    assert workspace.audit_state == read_whole(root)
    app.close()
    saved, head = snapshot.load(state_path(root), log_path(root), StateKey(state_path(root)))
    assert head.seq == len(records(root))
    assert saved == read_whole(root)
