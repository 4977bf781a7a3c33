"""A workspace copied with its log: sessions of the original are not valid in the copy."""

import shutil

import pytest
from agents import plan


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
