"""The number of files that a plan reaches: in the seal's record or in one that follows, and never a wrong one."""

import os
import threading

import pytest
from agents import plan
from scenes import records

from kaiza.store.documents import scope_preview

SCOPE = '{modify: ["**"], create: ["**"]}'


def fill(workspace, count):
    for number in range(count):
        directory = workspace / f"d{number % 7}"
        directory.mkdir(exist_ok=True)
        (directory / f"{number}").touch()


def write_first(app, workspace, path="new"):
    approved = plan(workspace, scope=SCOPE)
    app.call("begin_session", {"role": "WINDSURF"})
    assert app.call("write_file", {"path": path, "content": "x\n", "plan_hash": approved}).envelope is None
    return approved


def plan_details(workspace):
    return [each["detail"] for each in records(workspace) if each["kind"] == "plan"]


def finish_counts():
    for thread in threading.enumerate():
        if thread.name == "scope-count":
            thread.join()


@pytest.fixture
def slow_counts(monkeypatch):
    """Counts in the background begin when the event is set."""
    begin = threading.Event()
    counting = scope_preview.ScopeCounts._count

    def wait_and_count(*arguments):
        begin.wait()
        counting(*arguments)

    monkeypatch.setattr(scope_preview.ScopeCounts, "_count", wait_and_count)
    yield begin
    begin.set()


def test_the_seal_of_a_small_workspace_has_the_number_of_files(app, workspace):
    fill(workspace, 30)
    write_first(app, workspace)

    assert plan_details(workspace) == [{"how": "edited", "approved_by": None, "files": 30, "counted": True}]


def test_the_first_change_in_a_large_workspace_waits_for_no_count_and_the_number_follows(app, workspace, slow_counts):
    fill(workspace, scope_preview.MAX_FOREGROUND_ENTRIES)
    approved = write_first(app, workspace)

    assert plan_details(workspace) == [{"how": "edited", "approved_by": None, "files": None, "counted": False}]

    slow_counts.set()
    finish_counts()
    seal, count = [each for each in records(workspace) if each["kind"] == "plan"]
    state = app.services.workspaces[os.path.realpath(workspace)].audit_state
    assert count["detail"] == {
        "how": "edited",
        "approved_by": None,
        "files": scope_preview.MAX_FOREGROUND_ENTRIES + 1,  # with the file that the change created
        "counted": True,
        "seal_seq": seal["seq"],
    }
    assert (count["plan_id"], count["plan_hash"], count["request_id"]) == ("PLAN-1", approved, seal["request_id"])
    assert state.seals["PLAN-1"].seq == seal["seq"]


def test_a_count_that_the_end_of_the_server_stops_is_recorded_nowhere(make_app, workspace, slow_counts, monkeypatch):
    monkeypatch.setattr(scope_preview, "_STOP_SECONDS", 0)
    monkeypatch.setattr(scope_preview, "_BURST_SECONDS", 60)  # so that the count itself does not notice
    fill(workspace, scope_preview.MAX_FOREGROUND_ENTRIES + 1)
    app = make_app(workspace)
    write_first(app, workspace)
    counts = app.services.workspaces[os.path.realpath(workspace)].scope_counts
    counts.stop()
    slow_counts.set()
    finish_counts()

    assert [detail["counted"] for detail in plan_details(workspace)] == [False]


def test_a_deterministic_log_has_no_record_of_a_later_count(make_app, workspace):
    fill(workspace, scope_preview.MAX_FOREGROUND_ENTRIES + 1)
    write_first(make_app(workspace, deterministic=True), workspace)
    finish_counts()

    assert [detail["counted"] for detail in plan_details(workspace)] == [False]
