"""Tools that read: calling one twice gives the same answer, and changes nothing but the log."""

import os
from pathlib import Path

import pytest
from agents import plan
from context_caches import MINIMAL, write_cache

from kaiza.store.config.schema_registry import SchemaRegistry

ARGUMENTS = {
    "read_file": {"path": "src/a.md"},
    "read_files": {"paths": ["src/a.md", "gone"]},
    "list_directory": {"path": "src"},
    "find_files": {"pattern": "**/*.md"},
    "search_text": {"query": "gone"},
    "read_location": {"uri": "file://{root}/src/a.md", "position": {"line": 0, "character": 1}},
    "file_info": {"path": "src/a.md"},
    "project_info": {},
    "project_assets_summary": {},
    "project_references_missing": {},
    "context_list_caches": {},
    "context_inspect_cache": {"cache": "minimal"},
    "context_resolve": {"cache": "minimal", "query": "hello", "budget": 100},
    "list_plans": {},
    "read_plan": {"plan_id": "PLAN-1"},
    "lint_plan": {"plan_id": "PLAN-1"},
    "server_info": {},
}
ABOUT_THE_LOG = {"begin_session", "end_session", "session_status", "read_audit_log", "verify_audit_log"}
"""Tools whose answer contains what the calls themselves append to the log, or that open and end the session."""


def snapshot(root):
    """Every file outside of the log and Kaiza's own directory, with its content and time."""
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(Path(root).rglob("*"))
        if path.is_file() and not {".kaiza", "audit"} & set(path.relative_to(root).parts)
    }


def test_every_tool_that_reads_is_tested_here():
    reading = {row["id"] for row in SchemaRegistry().catalog() if row["safety_level"] == "read"}

    assert reading == ARGUMENTS.keys() | ABOUT_THE_LOG


@pytest.mark.rows("S4-51")
def test_a_tool_that_reads_answers_twice_the_same_and_changes_nothing(begun, workspace):
    root = os.path.realpath(workspace)
    (workspace / "src").mkdir()
    (workspace / "src/a.md").write_text("[x](gone.md)\n")
    # Outside of what is counted: the log grows with each call.
    (workspace / ".gitignore").write_text("audit/\n")
    write_cache(workspace, "minimal", MINIMAL)
    plan(workspace)
    before = snapshot(root)
    for tool, arguments in ARGUMENTS.items():
        asked = {**arguments, "uri": f"file://{root}/src/a.md"} if "uri" in arguments else arguments
        first, second = begun.call(tool, asked), begun.call(tool, asked)

        assert first.output is not None, tool
        assert (first.output, first.diagnostics) == (second.output, second.diagnostics), tool
        assert snapshot(root) == before, tool
