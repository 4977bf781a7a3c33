"""A workspace copied with its log: sessions of the original are not valid in the copy."""

import shutil

import pytest
from agents import confirm, plan
from scenes import bind, records


@pytest.mark.parametrize("tool", ["session_status", "write_file", "write_report", "end_session"])
def test_a_session_of_the_original_workspace_is_unknown_in_a_copy(begun, make_app, workspace, tmp_path, tool):
    approved = plan(workspace)
    session = begun.call("session_status", {}).output["session_id"]
    shutil.copytree(workspace, tmp_path / "copy")
    copy = make_app(tmp_path / "copy")
    arguments = {
        "write_file": {"path": "src/a", "content": "x\n", "plan_hash": approved},
        "write_report": {"title": "t", "content": "c"},
    }
    refused = copy.call(tool, {**arguments.get(tool, {}), "session_id": session}).envelope
    in_original = begun.call("session_status", {}).envelope

    assert refused["error_code"] == "SESSION_NOT_INITIALIZED"
    assert in_original is None
    assert not (tmp_path / "copy/src").exists()


def test_a_session_of_the_original_is_unknown_in_a_copy_that_continues_with_its_log(workspace, make_app, tmp_path):
    make_app(workspace).call("begin_session", {"role": "WINDSURF"})
    copy = tmp_path / "copy"
    shutil.copytree(workspace, copy)
    bind(copy, adopted=len(records(copy)))
    session = make_app(workspace).call("begin_session", {"role": "WINDSURF"}).output["session_id"]
    shutil.copy(workspace / "audit/audit-log.jsonl", copy / "audit")
    refused = make_app(copy).call("session_status", {"session_id": session}).envelope

    assert refused["error_code"] == "SESSION_NOT_INITIALIZED"


def test_limits_used_in_the_original_are_used_in_an_adopted_copy(begun, make_app, workspace, tmp_path):
    change = {"path": "src/a", "content": "x\n", "plan_hash": plan(workspace, more="limits: {operations: 1}\n")}
    assert begun.call("write_file", change).envelope is None
    copy = tmp_path / "copy"
    shutil.copytree(workspace, copy)
    assert confirm(copy, "adopt") == 0
    assert confirm(copy, "plan", "approve", "PLAN-1") == 0
    agent = make_app(copy)
    agent.call("begin_session", {"role": "WINDSURF"})
    refused = agent.call("write_file", {**change, "path": "src/b"}).envelope

    assert refused["invariant_id"] == "PLAN_LIMIT_REACHED"
