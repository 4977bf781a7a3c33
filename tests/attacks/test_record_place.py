"""`audit/` and the workspace are held open: once they are replaced or gone, nothing is answered without a record."""

import errno
import os
import shutil

import pytest
from agents import person, plan
from logs import error_code_of
from scenes import make_ready, records

from kaiza.app import App


@pytest.fixture
def served(workspace):
    """A server with a session under an approved plan, and the plan's hash."""
    plan_hash = plan(workspace)
    app = App([os.path.realpath(workspace)])
    app.call("begin_session", {"role": "WINDSURF"})
    yield app, plan_hash
    app.close()


def to_a_link(root):
    (root / "audit").rename(root.parent / "larger-disk")
    (root / "audit").symlink_to(root.parent / "larger-disk")


def to_a_link_to_a_copy(root):
    shutil.copytree(root / "audit", root.parent / "larger-disk")
    (root / "audit").rename(root.parent / "before")
    (root / "audit").symlink_to(root.parent / "larger-disk")


def away(root):
    (root / "audit").rename(root.parent / "larger-disk")


def to_a_file(root):
    away(root)
    (root / "audit").write_text("")


def to_an_empty_directory(root):
    away(root)
    (root / "audit").mkdir()


def to_a_copy(root):
    away(root)
    shutil.copytree(root.parent / "larger-disk", root / "audit")


MOVES = [to_a_link, to_a_link_to_a_copy, away, to_a_file, to_an_empty_directory, to_a_copy]
CALLS = {
    "server_info": {},
    "list_directory": {"path": "."},
    "read_file": {"path": "a.txt"},
    "session_status": {},
    "write_report": {"title": "t", "content": "c"},
}


@pytest.mark.parametrize("move", MOVES)
def test_nothing_is_answered_or_changed_once_audit_is_another_or_gone(served, workspace, move):
    app, plan_hash = served
    (workspace / "a.txt").write_text("mine\n")
    move(workspace)
    codes = {error_code_of(app, tool, **arguments) for tool, arguments in CALLS.items()}
    change = error_code_of(app, "write_file", path="src/x.py", content="x\n", plan_hash=plan_hash)

    assert codes == {"AUDIT_LOG_FAILED"}
    assert change == "AUDIT_LOG_FAILED"
    assert not (workspace / "src").exists()
    assert not (workspace / "docs").exists()


@pytest.mark.parametrize("move", MOVES)
def test_once_audit_is_back_reads_are_recorded_and_changes_wait_for_a_verification(served, workspace, move):
    app, plan_hash = served
    move(workspace)
    error_code_of(app, "list_directory", path=".")
    if (workspace / "audit").is_symlink() or (workspace / "audit").is_file():
        (workspace / "audit").unlink()
    elif (workspace / "audit").exists():
        shutil.rmtree(workspace / "audit")
    kept = workspace.parent / "before"
    (kept if kept.exists() else workspace.parent / "larger-disk").rename(workspace / "audit")
    ask = {"path": "src/x.py", "content": "x\n", "plan_hash": plan_hash}
    before = error_code_of(app, "write_file", **ask), error_code_of(app, "list_directory", path=".")
    verified = person(workspace, "audit", "verify")

    assert before == ("SELF_AUDIT_FAILURE", "ok")
    assert records(workspace)[-1]["tool_name"] == "list_directory"
    assert verified == 0
    assert error_code_of(app, "write_file", **ask) == "ok"


def test_a_link_in_place_of_audit_at_the_start_is_not_followed_and_not_passed_over(workspace):
    to_a_link(workspace)
    app = App([os.path.realpath(workspace)])
    told = error_code_of(app, "begin_session", role="WINDSURF"), error_code_of(app, "server_info")
    app.close()

    assert told == ("AUDIT_LOG_FAILED", "AUDIT_LOG_FAILED")
    assert records(workspace) == []


@pytest.mark.parametrize("how", ["copied", "empty", "gone", "linked"])
def test_a_server_whose_workspace_was_replaced_refuses_every_call_until_it_is_restarted(served, workspace, how):
    app, plan_hash = served
    (workspace / "a.txt").write_text("mine\n")
    old = workspace.rename(workspace.parent / "old")
    if how == "copied":
        shutil.copytree(old, workspace)
    elif how == "empty":
        make_ready(workspace)
    elif how == "linked":
        make_ready(workspace.parent / "third")
        workspace.symlink_to(workspace.parent / "third")
    there = len(records(old))
    told = app.call("read_file", {"path": "a.txt"}).envelope
    change = error_code_of(app, "write_file", path="src/x.py", content="x\n", plan_hash=plan_hash)

    assert (told["error_code"], told["cause"]["reason"]) == ("AUDIT_LOG_FAILED", "root_replaced")
    assert change == "AUDIT_LOG_FAILED"
    assert not (workspace / "src").exists()
    assert not (old / "src").exists()
    assert len(records(old)) == there


def test_a_restart_serves_the_directory_that_took_the_workspaces_place(served, workspace):
    app, plan_hash = served
    old = workspace.rename(workspace.parent / "old")
    shutil.copytree(old, workspace)
    error_code_of(app, "list_directory", path=".")
    app.close()
    again = App([os.path.realpath(workspace)])
    begun = again.call("begin_session", {"role": "WINDSURF"}).output
    told = error_code_of(again, "write_file", path="src/x.py", content="x\n", plan_hash=plan_hash)
    again.close()

    assert begun["audit"]["verdict"] == "intact"
    assert told == "ok"


def test_a_workspace_that_was_replaced_before_the_first_call_is_not_served(workspace):
    plan(workspace)
    app = App([os.path.realpath(workspace)])
    old = workspace.rename(workspace.parent / "old")
    shutil.copytree(old, workspace)
    told = app.call("begin_session", {"role": "WINDSURF"}).envelope
    app.close()

    assert (told["error_code"], told["cause"]["reason"]) == ("AUDIT_LOG_FAILED", "root_replaced")
    assert records(workspace) == []


def test_a_session_from_before_is_answered_nothing_where_audit_is_gone_before_the_first_call(workspace):
    (workspace / "a.txt").write_text("mine\n")
    app = App([os.path.realpath(workspace)])
    session = app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
    app.close()
    again = App([os.path.realpath(workspace)])
    away(workspace)
    told = error_code_of(again, "read_file", path="a.txt", session_id=session)
    again.close()

    assert told == "AUDIT_LOG_FAILED"


def test_a_look_at_audit_that_fails_for_a_moment_is_no_damage(served, workspace, monkeypatch):
    app, plan_hash = served
    look = os.stat

    def fails(path, *args, **options):
        if path == f"{os.path.realpath(workspace)}/audit":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return look(path, *args, **options)

    monkeypatch.setattr(os, "stat", fails)
    meanwhile = error_code_of(app, "list_directory", path=".")
    monkeypatch.setattr(os, "stat", look)

    assert meanwhile == "AUDIT_LOG_FAILED"
    assert error_code_of(app, "write_file", path="src/x.py", content="x\n", plan_hash=plan_hash) == "ok"
