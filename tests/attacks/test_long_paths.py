"""Paths of a thousand levels and names that no file system takes, in every argument that is a path."""

import os
import subprocess

import pytest
from agents import WIDE, plan, sha
from outside_changes import begin
from scenes import records

DEEP = "/".join(["d"] * 1000)
LONG = {
    "1,000 levels": DEEP,
    "2,047 levels": "/".join(["d"] * 2047),
    "10,000 levels": "/".join(["d"] * 10_000),
    "a name of 300 bytes": "n" * 300,
    "a directory of 300 bytes": "n" * 300 + "/x",
    "a name of 300 bytes in 150 characters": "é" * 150 + "/x",
    "5,000 bytes": "/".join(["n" * 200] * 25),
    "4,095 bytes": "/".join(["n" * 255] * 16)[:4095],
    "3,000 dots": "./" * 3000 + "missing",
    "5,000 slashes": "missing" + "/" * 5000,
    "1,000 stars": "/".join(["*"] * 1000),
}
EXPECTED = {
    *("INVALID_PATH", "FILE_NOT_FOUND", "PATH_NOT_FOUND", "INVALID_INPUT_VALUE", "INVALID_INPUT_FORMAT"),
    *("PATCH_INVALID", "CONTEXT_CACHE_MISSING", "SESSION_INITIALIZATION_FAILED", "PLAN_NOT_FOUND"),
}


def calls(path, root, plan_hash):
    """A call for each argument that is a path."""
    change = {"plan_hash": plan_hash, "expected_hash": "0" * 64}
    hunk = "@@ -1 +1 @@\n-x\n+y\n"
    return [
        ("read_file", {"path": path}),
        ("list_directory", {"path": path}),
        ("find_files", {"pattern": "*", "path": path}),
        ("find_files", {"pattern": path}),
        ("search_text", {"query": "x", "path": path}),
        ("search_text", {"query": "x", "glob": path}),
        ("file_info", {"path": path}),
        ("read_location", {"uri": f"file://{root}/{path}", "position": {"line": 0, "character": 0}}),
        ("write_file", {**change, "path": path, "content": "x"}),
        ("edit_file", {**change, "path": path, "edits": [{"old_text": "x", "new_text": "y"}]}),
        ("delete_file", {**change, "path": path}),
        ("move_file", {**change, "source": path, "destination": "b"}),
        ("move_file", {**change, "source": "a", "destination": path, "expected_hash": sha(b"x\n")}),
        ("apply_patch", {"patch": f"--- a/{path}\n+++ b/{path}\n{hunk}", "plan_hash": plan_hash}),
        ("read_audit_log", {"path": path}),
        ("read_plan", {"plan_id": path}),
        ("begin_session", {"role": "WINDSURF", "workspace_root": f"{root}/{path}"}),
        ("context_resolve", {"cache": path, "query": "x", "budget": 1}),
    ]


@pytest.fixture
def plan_hash(begun, workspace):
    (workspace / "a").write_text("x\n")
    return plan(workspace, scope=WIDE)


@pytest.mark.parametrize("path", LONG.values(), ids=LONG)
def test_a_long_path_is_refused_by_its_own_fault(begun, workspace, plan_hash, path):
    root = os.path.realpath(workspace)
    found = {}
    for tool, arguments in calls(path, root, plan_hash):
        outcome = begun.call(tool, arguments)
        if outcome.envelope is not None:
            found[tool, *arguments] = outcome.envelope["error_code"]

    assert {name: code for name, code in found.items() if code not in EXPECTED} == {}
    assert records(workspace)[-1]["tool_name"] == "context_resolve"


@pytest.mark.parametrize("levels", [101, 1000, 2047])
def test_a_change_that_needs_too_many_new_directories_is_refused_and_creates_none(begun, workspace, plan_hash, levels):
    path = "/".join(["d"] * levels)
    new_file = f"--- /dev/null\n+++ b/{path}/f\n@@ -0,0 +1 @@\n+x\n"
    for tool, arguments in (
        ("write_file", {"path": f"{path}/f", "content": "x"}),
        ("move_file", {"source": "a", "destination": f"{path}/f", "expected_hash": sha(b"x\n")}),
        ("apply_patch", {"patch": new_file}),
    ):
        envelope = begun.call(tool, {**arguments, "plan_hash": plan_hash}).envelope
        assert (tool, envelope["error_code"], envelope["cause"]["why"]) in {
            (tool, "INVALID_PATH", why) for why in ("depth", "path_length")
        }

    assert not (workspace / "d").exists()
    assert begun.call("write_file", {"path": "d/" * 100 + "f", "content": "x", "plan_hash": plan_hash}).output


@pytest.fixture
def deep(workspace):
    """A workspace with a directory of a thousand levels, and a file at its end."""
    directory = os.open(workspace, os.O_RDONLY)
    for _ in range(1000):
        os.mkdir("d", dir_fd=directory)
        below = os.open("d", os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    with open("f", "w", opener=lambda name, flags: os.open(name, flags, dir_fd=directory)) as file:
        file.write("one\n")
    os.close(directory)
    yield workspace
    subprocess.run(["rm", "-rf", workspace / "d"], check=True)  # Python's own removal is too deep for its stack


def test_every_tool_works_in_a_directory_of_a_thousand_levels(begun, deep, plan_hash):
    old, new, moved, undone = (f"{DEEP}/{name}" for name in ("f", "g", "h", "x.md"))
    edit = {"path": old, "expected_hash": sha(b"one\n"), "edits": [{"old_text": "one", "new_text": "two"}]}
    calls = [
        ("read_file", {"path": old}),
        ("file_info", {"path": old}),
        ("list_directory", {"path": DEEP}),
        ("find_files", {"pattern": "**/f"}),
        ("search_text", {"query": "one"}),
        ("edit_file", {**edit, "plan_hash": plan_hash}),
        ("write_file", {"path": undone, "content": "[x](y.md)\n", "plan_hash": plan_hash}),
        ("write_file", {"path": new, "content": "new\n", "plan_hash": plan_hash}),
        ("move_file", {"source": new, "destination": moved, "expected_hash": sha(b"new\n"), "plan_hash": plan_hash}),
        ("delete_file", {"path": moved, "expected_hash": sha(b"new\n"), "plan_hash": plan_hash}),
        *((tool, {}) for tool in ("project_info", "project_references_missing", "project_assets_summary")),
    ]
    answers = [begun.call(tool, arguments) for tool, arguments in calls]
    requests = [answers[at].output["request_id"] for at in (5, 6)]
    answers.append(begun.call("undo_changes", {"request_ids": requests, "plan_hash": plan_hash}))

    assert [each.envelope and each.envelope["error_code"] for each in answers] == [None] * len(answers)
    assert answers[3].output["items"][0]["path"] == old
    assert begun.call("read_file", {"path": old}).output["content"] == "one\n"
    assert not (deep / undone).exists()


def test_a_session_in_a_tree_of_a_thousand_levels_is_compared_whole(make_app, deep):
    (deep / ".gitignore").write_text("*.log\n")
    app = make_app(deep)
    session_id = begin(app)
    descriptor = os.open(deep / DEEP, os.O_RDONLY)
    for name in ("g", "x.log"):
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)
    output = app.call("end_session", {"session_id": session_id}).output

    assert output["manifest"] == "whole"
    assert [each["path"] for each in output["ungoverned"]] == [f"{DEEP}/g", f"{DEEP}/x.log"]
    assert records(deep)[-1]["tool_name"] == "end_session"


@pytest.mark.parametrize("path", LONG.values(), ids=LONG)
def test_a_plan_whose_scope_has_a_long_path_is_read_and_checked(begun, workspace, path):
    plan(workspace, "PLAN-9", scope=f'{{modify: ["{path}"], create: ["{path}"], move: [{{from: "a", to: "{path}"}}]}}')
    answers = [
        begun.call("list_plans", {}),
        begun.call("lint_plan", {"plan_id": "PLAN-9"}),
        begun.call("write_file", {"path": "a", "content": "x", "plan_hash": "0" * 64}),
    ]
    codes = {answer.envelope["error_code"] for answer in answers if answer.envelope}

    assert codes <= {"PLAN_NOT_FOUND"}
