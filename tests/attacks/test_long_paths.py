"""Paths of a thousand levels and names that no file system takes, in every argument that is a path."""

import os
import subprocess

import pytest
from agents import WIDE, plan, sha
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
def deep_workspace(workspace):
    """A workspace with a directory a thousand levels down. Python's own removal is too deep for its stack."""
    directory = os.open(workspace, os.O_RDONLY)
    for _ in range(1000):
        os.mkdir("d", dir_fd=directory)
        below = os.open("d", os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    os.close(directory)
    yield workspace
    subprocess.run(["rm", "-rf", workspace / "d"], check=True)


def test_files_a_thousand_levels_down_are_read_changed_and_restored(begun, deep_workspace, plan_hash):
    written = begun.call("write_file", {"path": f"{DEEP}/f.md", "content": "[x](y.md)\n", "plan_hash": plan_hash})
    answers = [
        begun.call("read_file", {"path": f"{DEEP}/f.md"}),
        begun.call("find_files", {"pattern": "**/*.md"}),
        begun.call("search_text", {"query": "[x]"}),
        begun.call("project_info", {}),
        begun.call("project_references_missing", {}),
        begun.call("project_assets_summary", {}),
        begun.call("undo_changes", {"request_ids": [written.output["request_id"]], "plan_hash": plan_hash}),
        begun.call("end_session", {}),
    ]

    assert [answer.envelope for answer in answers] == [None] * len(answers)
    assert not (deep_workspace / DEEP / "f.md").exists()


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
