"""Paths as deep as the system has them: each call answers, and what the agent did or did not do is known."""

import json
import os
import subprocess

import pytest
from agents import WIDE, plan, sha
from scenes import records

LEVELS = 1_000
DEEP = "/".join(["a"] * LEVELS)


@pytest.fixture
def deep(workspace):
    """A workspace with a directory of 1,000 levels, and a file at its end."""
    descriptor = os.open(workspace, os.O_RDONLY)
    for _ in range(LEVELS):
        os.mkdir("a", dir_fd=descriptor)
        inner = os.open("a", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    with open("f", "w", opener=lambda name, flags: os.open(name, flags, dir_fd=descriptor)) as file:
        file.write("one\n")
    os.close(descriptor)
    yield workspace
    subprocess.run(["rm", "-rf", workspace / "a"], check=True)  # Python's own way recurses as deep


def test_a_path_of_a_thousand_new_directories_is_refused_and_nothing_is_made(begun, workspace):
    approved = plan(workspace, scope=WIDE)
    for depth in (101, LEVELS, 2_040):
        path = "/".join(["a"] * depth) + "/f"
        envelope = begun.call("write_file", {"path": path, "content": "x\n", "plan_hash": approved}).envelope

        assert (envelope["error_code"], envelope["cause"]["why"]) == ("INVALID_PATH", "depth")
    inside = {"path": "/".join(["b"] * 100) + "/f", "content": "x\n", "plan_hash": approved}
    assert begun.call("write_file", inside).envelope is None
    assert not (workspace / "a").exists()


def test_every_tool_works_in_a_directory_of_a_thousand_levels(begun, deep):
    approved = plan(deep, scope=WIDE)
    old, new, moved = f"{DEEP}/f", f"{DEEP}/g", f"{DEEP}/h"
    edit = {"path": old, "expected_hash": sha(b"one\n"), "edits": [{"old_text": "one", "new_text": "two"}]}
    calls = [
        ("read_file", {"path": old}),
        ("file_info", {"path": old}),
        ("list_directory", {"path": DEEP}),
        ("find_files", {"pattern": "**/f"}),
        ("search_text", {"query": "one"}),
        *((tool, {}) for tool in ("project_info", "project_references_missing", "project_assets_summary")),
        ("write_file", {"path": new, "content": "new\n", "plan_hash": approved}),
        ("edit_file", {**edit, "plan_hash": approved}),
        ("move_file", {"source": new, "destination": moved, "expected_hash": sha(b"new\n"), "plan_hash": approved}),
        ("delete_file", {"path": moved, "expected_hash": sha(b"new\n"), "plan_hash": approved}),
    ]
    answers = [begun.call(tool, arguments) for tool, arguments in calls]

    assert [each.envelope and each.envelope["error_code"] for each in answers] == [None] * len(calls)
    assert answers[3].output["items"][0]["path"] == old
    undone = begun.call("undo_changes", {"request_ids": [answers[9].output["request_id"]], "plan_hash": approved})
    assert undone.envelope is None
    assert begun.call("read_file", {"path": old}).output["content"] == "one\n"


def test_a_session_in_a_tree_of_a_thousand_levels_is_compared_whole(make_app, deep):
    (deep / ".gitignore").write_text("*.log\n")
    app = make_app(deep)
    session_id = app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
    (workspace,) = app.services.workspaces.values()
    workspace.manifest.wait(session_id, 60)
    descriptor = os.open(deep / DEEP, os.O_RDONLY)
    for name in ("g", "x.log"):
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)
    output = app.call("end_session", {"session_id": session_id}).output

    assert output["manifest"] == "whole"
    assert [each["path"] for each in output["ungoverned"]] == [f"{DEEP}/g", f"{DEEP}/x.log"]
    assert json.dumps(records(deep)[-1])
