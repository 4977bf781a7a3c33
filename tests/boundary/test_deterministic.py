"""Deterministic logs: what is written can be compared from run to run, and nothing is decided less strictly."""

import os
import shutil
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from agents import plan
from logs import error_code_of
from scenes import make_ready, records

from kaiza.boundary import clock
from kaiza.clock import current_timestamp
from kaiza.domain import errors
from kaiza.domain.call import CallRequest
from kaiza.domain.caps import Caps
from kaiza.store import human_decisions
from kaiza.store.audit.verification.accept import accept_damage
from kaiza.store.audit.verification.verify import verify_log
from kaiza.store.workspace import Workspace

BY_MACHINE = ("state", "live")
"""Members of `detail` that name this machine's state directory and this process, in every log."""


@pytest.fixture
def counting(make_app, workspace):
    """A deterministic application with one open session of the executor."""
    app = make_app(workspace, deterministic=True)
    app.call("begin_session", {"role": "WINDSURF"})
    return app


def run(make_app, root):
    """One session with a read, a failure, a change and a refusal; its records and its answers."""
    make_ready(root)
    (root / "src").mkdir()
    (root / "src/a.py").write_text("a = 1\n")
    approved = plan(root)
    app = make_app(root, deterministic=True)
    change = {"path": "src/b.py", "content": "b = 1\n", "plan_hash": approved}
    answers = [
        app.call("begin_session", {"role": "WINDSURF"}),
        app.call("read_file", {"path": "src/a.py"}),
        app.call("read_file", {"path": "src/a.py"}),
        app.call("read_file", {"path": "missing.py"}),
        app.call("debug_fault", {"kind": "raise"}),
        app.call("write_file", change),
        app.call("write_file", {**change, "path": "elsewhere.py"}),
        app.call("write_report", {"title": "Out of scope", "content": "I was wrong."}),
        app.call("no_such_tool", {}),
        app.call("end_session", {}),
    ]
    app.close()
    return records(root), answers


@pytest.mark.rows("S3-7")
def test_two_runs_write_the_same_records_and_give_the_same_answers(make_app, tmp_path, monkeypatch):
    root = tmp_path / "project"
    results = []
    for number in range(2):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / f"state-{number}"))
        written, answers = run(make_app, root)
        for record in written:
            for name in ("prev_hash", "entry_hash"):
                del record[name]
            for name in BY_MACHINE:
                record["detail"].pop(name, None)
        given = [(answer.output or answer.envelope) for answer in answers]
        given[0]["audit"].pop("entry_hash")
        results.append((written, given))
        shutil.rmtree(root)

    assert results[0] == results[1]
    assert len({record["request_id"] for record in results[0][0]}) == len(results[0][1])


@pytest.mark.rows("S3-7")
def test_records_count_up_by_a_millisecond_from_1970_without_durations_and_their_ids_are_of_version_5(
    make_app, tmp_path
):
    written, _ = run(make_app, tmp_path / "project")
    ids = {record[name] for record in written for name in ("request_id", "session_id")} - {None}

    assert [record["timestamp"] for record in written] == [
        f"1970-01-01T00:00:00.{number:03d}Z" for number in range(len(written))
    ]
    assert {record["duration_ms"] for record in written if record["kind"] == "call"} == {0}
    assert all(record["detail"]["deterministic"] is True for record in written)
    assert {uuid.UUID(each).version for each in ids} == {5}


def test_equal_calls_that_arrive_before_either_is_recorded_have_different_ids(counting):
    request = CallRequest("read_file", {"path": "a"})
    stamped = [counting.stamp(request) for _ in range(3)]

    assert len({call.request_id for call in stamped}) == 3


def test_records_that_others_append_are_counted(counting, workspace):
    request = CallRequest("read_file", {"path": "a"})
    before = counting.stamp(request)
    decide(workspace, "freeze")
    after = counting.stamp(request)

    assert after.request_id != before.request_id
    assert (before.timestamp, after.timestamp) == ("1970-01-01T00:00:00.001Z", "1970-01-01T00:00:00.002Z")


def test_an_id_follows_from_the_tool_and_the_arguments(make_app, tmp_path):
    read = CallRequest("read_file", {"path": "a"})
    requests = [read, CallRequest("read_file", {"path": "b"}), CallRequest("file_info", {"path": "a"}), read]
    apps = [make_app(make_ready(tmp_path / str(number)), deterministic=True) for number in range(len(requests))]
    ids = [app.stamp(request).request_id for app, request in zip(apps, requests, strict=True)]

    assert len(set(ids)) == 3
    assert ids[0] == ids[3]


def test_the_ids_are_the_same_if_the_server_is_restarted_between_the_calls(make_app, tmp_path):
    def call(app):
        stamped = app.stamp(CallRequest("no_such_tool", {}))
        app.answer(stamped)
        return stamped.request_id

    one, other = (make_app(make_ready(tmp_path / name), deterministic=True) for name in ("one", "other"))
    uninterrupted, first = [call(one), call(one)], call(other)
    other.close()

    assert [first, call(make_app(tmp_path / "other", deterministic=True))] == uninterrupted


def test_ids_differ_when_the_same_records_are_in_other_logs(make_app, tmp_path):
    roots = [make_ready(tmp_path / name) for name in ("one", "two")]
    both = make_app(*roots, deterministic=True)
    both.call("begin_session", {"role": "WINDSURF", "workspace_root": str(roots[1])})
    before = both.stamp(CallRequest("read_file", {"path": "a"}))
    both.close()
    alone = make_app(roots[0], deterministic=True)
    alone.call("no_such_tool", {})

    assert alone.stamp(CallRequest("read_file", {"path": "a"})).request_id != before.request_id


def decide(root, action):
    """Record a person's decision, as a command does."""
    opened = Workspace(os.path.realpath(root), Caps())
    written = human_decisions.record_decision(opened, action, "ada", detail={"reason": "because"})
    opened.close(current_timestamp())
    return written


def test_a_person_freezes_a_deterministic_workspace_in_the_log_s_own_time(counting, workspace):
    approved = plan(workspace)
    written = decide(workspace, "freeze")
    envelope = counting.call("write_file", {"path": "src/a", "content": "", "plan_hash": approved}).envelope

    assert (written.timestamp, written.detail["deterministic"]) == ("1970-01-01T00:00:00.001Z", True)
    assert envelope["invariant_id"] == "WORKSPACE_FROZEN"
    assert verify_log(str(workspace)).verdict == "intact"


def test_a_person_s_record_in_a_new_log_is_not_deterministic(make_app, workspace):
    decide(workspace, "freeze")

    assert "deterministic" not in records(workspace)[0]["detail"]
    with pytest.raises(errors.SystemError) as refused:
        make_app(workspace, deterministic=True)
    assert refused.value.error_code == "BOOTSTRAP_FAILURE"


@pytest.mark.parametrize("first", [True, False])
def test_a_log_of_the_other_kind_is_not_served(make_app, workspace, first):
    app = make_app(workspace, deterministic=first)
    app.call("server_info", {})
    app.close()
    with pytest.raises(errors.SystemError) as refused:
        make_app(workspace, deterministic=not first)

    assert refused.value.error_code == "BOOTSTRAP_FAILURE"
    make_app(workspace, deterministic=first)


@pytest.mark.parametrize("first", [True, False])
def test_a_server_does_not_append_to_a_log_that_another_one_began_in_the_other_way(make_app, workspace, first):
    late = make_app(workspace, deterministic=not first)
    early = make_app(workspace, deterministic=first)
    early.call("begin_session", {"role": "WINDSURF"})
    refused = late.call("begin_session", {"role": "WINDSURF"})

    assert refused.envelope["error_code"] == "AUDIT_LOG_FAILED"
    assert len(records(workspace)) == 1


def test_only_one_deterministic_server_serves_a_workspace(make_app, workspace):
    first = make_app(workspace, deterministic=True)
    with pytest.raises(errors.SystemError) as refused:
        make_app(workspace, deterministic=True)
    first.close()

    assert refused.value.error_code == "BOOTSTRAP_FAILURE"
    make_app(workspace, deterministic=True)


def test_a_plan_expires_by_the_real_clock(counting, workspace):
    yesterday = (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    expired = plan(workspace, more=f'expires: "{yesterday}"\n')
    change = {"path": "src/a", "content": "", "plan_hash": expired, "dry_run": True}
    envelope = counting.call("write_file", change).envelope

    assert envelope["error_code"] == "PLAN_NOT_APPROVED"
    assert envelope["cause"]["reason"] == "expired"


@pytest.mark.parametrize(("hours", "code"), [((11, 11), "ok"), ((11, 13), "SESSION_NOT_INITIALIZED")])
def test_an_idle_session_ends_by_the_real_clock(counting, monkeypatch, hours, code):
    now = datetime.now(UTC)
    for passed in hours:
        now += timedelta(hours=passed)
        instant = now.isoformat(timespec="milliseconds")[:-6] + "Z"
        monkeypatch.setattr(clock, "current_timestamp", lambda instant=instant: instant)
        last = error_code_of(counting, "list_plans")

    assert last == code


def test_a_session_does_not_outlive_its_server(make_app, workspace):
    first = make_app(workspace, deterministic=True)
    session = first.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
    first.close()
    envelope = make_app(workspace, deterministic=True).call("list_plans", {"session_id": session}).envelope

    assert envelope["error_code"] == "SESSION_NOT_INITIALIZED"


def test_reports_unlock_three_times_in_all_also_after_a_damaged_log_is_accepted(make_app, workspace):
    approved = plan(workspace)
    change = {"path": "elsewhere.py", "content": "", "plan_hash": approved}
    app = make_app(workspace, deterministic=True)
    app.call("begin_session", {"role": "WINDSURF"})
    for _ in range(3):
        app.call("write_file", change)
        assert app.call("write_report", {"title": "Again", "content": "Sorry."}).output["unlocked"]
    app.close()
    log = workspace / "audit/audit-log.jsonl"
    log.write_bytes(log.read_bytes().replace(b"Sorry", b"sorry").replace(b'"seq":3', b'"seq":9'))
    assert accept_damage(str(workspace), reason="a test", person="ada") is not None
    app = make_app(workspace, deterministic=True)
    app.call("begin_session", {"role": "WINDSURF"})
    app.call("write_file", change)

    assert not app.call("write_report", {"title": "Again", "content": "Sorry."}).output["unlocked"]
    assert records(workspace)[0]["timestamp"] == "1970-01-01T00:00:00.000Z"
    assert verify_log(str(workspace)).verdict == "intact"
