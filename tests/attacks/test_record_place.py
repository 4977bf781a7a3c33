"""A replaced or missing `audit/` or workspace is detected: no call is answered without a record."""

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


def link_elsewhere(root):
    (root / "audit").rename(root.parent / "larger-disk")
    (root / "audit").symlink_to(root.parent / "larger-disk")


def link_to_a_copy(root):
    shutil.copytree(root / "audit", root.parent / "larger-disk")
    (root / "audit").rename(root.parent / "before")
    (root / "audit").symlink_to(root.parent / "larger-disk")


def move_away(root):
    (root / "audit").rename(root.parent / "larger-disk")


def put_a_file(root):
    move_away(root)
    (root / "audit").write_text("")


def put_an_empty_directory(root):
    move_away(root)
    (root / "audit").mkdir()


def put_a_copy(root):
    move_away(root)
    shutil.copytree(root.parent / "larger-disk", root / "audit")


REPLACEMENTS = [link_elsewhere, link_to_a_copy, move_away, put_a_file, put_an_empty_directory, put_a_copy]
CALLS = {
    "server_info": {},
    "list_directory": {"path": "."},
    "read_file": {"path": "a.txt"},
    "session_status": {},
    "write_report": {"title": "t", "content": "c"},
}


@pytest.mark.parametrize("replace_audit", REPLACEMENTS)
def test_every_call_is_refused_once_audit_is_replaced_or_gone(served, workspace, replace_audit):
    app, plan_hash = served
    (workspace / "a.txt").write_text("mine\n")
    replace_audit(workspace)
    codes = {error_code_of(app, tool, **arguments) for tool, arguments in CALLS.items()}
    change = error_code_of(app, "write_file", path="src/x.py", content="x\n", plan_hash=plan_hash)

    assert codes == {"AUDIT_LOG_FAILED"}
    assert change == "AUDIT_LOG_FAILED"
    assert not (workspace / "src").exists()
    assert not (workspace / "docs").exists()


@pytest.mark.parametrize("replace_audit", REPLACEMENTS)
def test_once_audit_is_restored_reads_are_recorded_and_changes_wait_for_a_verification(
    served, workspace, replace_audit
):
    app, plan_hash = served
    replace_audit(workspace)
    error_code_of(app, "list_directory", path=".")
    if (workspace / "audit").is_symlink() or (workspace / "audit").is_file():
        (workspace / "audit").unlink()
    elif (workspace / "audit").exists():
        shutil.rmtree(workspace / "audit")
    original = workspace.parent / "before"
    (original if original.exists() else workspace.parent / "larger-disk").rename(workspace / "audit")
    arguments = {"path": "src/x.py", "content": "x\n", "plan_hash": plan_hash}
    before = error_code_of(app, "write_file", **arguments), error_code_of(app, "list_directory", path=".")
    verified = person(workspace, "audit", "verify")

    assert before == ("SELF_AUDIT_FAILURE", "ok")
    assert records(workspace)[-1]["tool_name"] == "list_directory"
    assert verified == 0
    assert error_code_of(app, "write_file", **arguments) == "ok"


def test_a_link_in_place_of_audit_at_the_start_refuses_every_call(workspace):
    link_elsewhere(workspace)
    app = App([os.path.realpath(workspace)])
    codes = error_code_of(app, "begin_session", role="WINDSURF"), error_code_of(app, "server_info")
    app.close()

    assert codes == ("AUDIT_LOG_FAILED", "AUDIT_LOG_FAILED")
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
    count = len(records(old))
    read = app.call("read_file", {"path": "a.txt"}).envelope
    change = error_code_of(app, "write_file", path="src/x.py", content="x\n", plan_hash=plan_hash)

    assert (read["error_code"], read["cause"]["reason"]) == ("AUDIT_LOG_FAILED", "root_replaced")
    assert change == "AUDIT_LOG_FAILED"
    assert not (workspace / "src").exists()
    assert not (old / "src").exists()
    assert len(records(old)) == count


def test_a_restarted_server_serves_the_directory_that_replaced_the_workspace(served, workspace):
    app, plan_hash = served
    old = workspace.rename(workspace.parent / "old")
    shutil.copytree(old, workspace)
    error_code_of(app, "list_directory", path=".")
    app.close()
    restarted = App([os.path.realpath(workspace)])
    begun = restarted.call("begin_session", {"role": "WINDSURF"}).output
    change = error_code_of(restarted, "write_file", path="src/x.py", content="x\n", plan_hash=plan_hash)
    restarted.close()

    assert begun["audit"]["verdict"] == "intact"
    assert change == "ok"


def test_a_transient_error_of_stat_on_audit_is_not_damage(served, workspace, monkeypatch):
    app, plan_hash = served
    stat = os.stat

    def fail_for_audit(path, *args, **options):
        if path == f"{os.path.realpath(workspace)}/audit":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return stat(path, *args, **options)

    monkeypatch.setattr(os, "stat", fail_for_audit)
    meanwhile = error_code_of(app, "list_directory", path=".")
    monkeypatch.setattr(os, "stat", stat)

    assert meanwhile == "AUDIT_LOG_FAILED"
    assert error_code_of(app, "write_file", path="src/x.py", content="x\n", plan_hash=plan_hash) == "ok"
