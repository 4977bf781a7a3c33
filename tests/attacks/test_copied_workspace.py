"""A workspace that was copied with its record: what belongs to the original is no good in the copy."""

import shutil

import pytest
from agents import plan


@pytest.mark.parametrize("tool", ["session_status", "write_file", "write_report", "end_session"])
def test_a_session_of_the_original_is_not_open_in_a_copy(begun, make_app, workspace, tmp_path, tool):
    approved = plan(workspace)
    session = begun.call("session_status", {}).output["session_id"]
    shutil.copytree(workspace, tmp_path / "copy")
    copy = make_app(tmp_path / "copy")
    asked = {
        "write_file": {"path": "src/a", "content": "x\n", "plan_hash": approved},
        "write_report": {"title": "t", "content": "c"},
    }
    told = copy.call(tool, {**asked.get(tool, {}), "session_id": session}).envelope
    here = begun.call("session_status", {}).envelope

    assert told["error_code"] == "SESSION_NOT_INITIALIZED"
    assert here is None
    assert not (tmp_path / "copy/src").exists()
