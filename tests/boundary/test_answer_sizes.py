"""Answers of every tool end before the size at which clients cut them, unless the call asks for more."""

import json
from functools import partial

import pytest
from agents import WIDE, plan
from scenes import write_adopted_settings

from kaiza.domain.call import CallRequest
from kaiza.domain.caps import Caps

ANSWER_BYTES = 32 * 1024
PATCHED_FILES = 150
CLIENTS = {"claude-code": 50_000, "codex-mcp-client": 47_900, "gemini-cli-mcp-client": 39_959}


def size(output):
    return len(json.dumps(output, ensure_ascii=False, separators=(",", ":")).encode())


def put_plans(root, count):
    for number in range(count):
        path = root / "plans" / f"PLAN-{number + 100}.md"
        path.write_text(f"---\nplan_id: PLAN-{number + 100}\ntitle: {'A long title ' * 20}\n---\n")


def patch_files(root):
    for number in range(PATCHED_FILES):
        (root / "src" / f"file{number:03d}").write_text("one\n")
    hunk = "--- a/src/file{0:03d}\n+++ b/src/file{0:03d}\n@@ -1 +1 @@\n-one\n+two\n"
    return "".join(hunk.format(number) for number in range(PATCHED_FILES))


@pytest.fixture
def app(make_app, workspace):
    (workspace / "src").mkdir()
    (workspace / "src/long").write_text("a line of a long file, as long as a line of code often is\n" * 60_000)
    (workspace / "src/hits").write_text("needle and more of the same line\n" * 1_000)
    (workspace / "links.md").write_text("".join(f"[x](missing/{number:04d}.md)\n" for number in range(900)))
    for number in range(200):
        (workspace / f"{'an entry with a long name ' * 5}{number:03d}").touch()
    put_plans(workspace, 150)
    (workspace / "plans/PLAN-900.md").write_text("---\nplan_id: PLAN-900\n---\n" + "Text of a long plan.\n" * 5_000)
    return make_app(workspace)


def every_long_answer(app, workspace):
    """The output of each call that could be long, by a name."""
    approved = plan(workspace, scope=WIDE, more="limits: {files: 1000, lines: 100000, operations: 1000}\n")
    begun = app.call("begin_session", {"role": "WINDSURF"}).output
    yield "begin_session", begun
    executor = {"session_id": begun["session_id"]}
    planner = app.call("begin_session", {"role": "ANTIGRAVITY"}).output["session_id"]
    text = "---\n" + "".join(f"key_{number}: 1\n" for number in range(500)) + "---\n"
    patch = {"patch": patch_files(workspace), "plan_hash": approved}
    calls = [
        ("read_file", {"path": "src/long"}),
        ("read_files", {"paths": ["src/long"] * 50}),
        ("list_directory", {"path": "."}),
        ("find_files", {"pattern": "**"}),
        ("search_text", {"query": "needle", "context_lines": 5}),
        ("list_plans", {}),
        ("read_plan", {"plan_id": "PLAN-900"}),
        ("lint_plan", {"content": text}),
        ("project_references_missing", {}),
        ("project_assets_summary", {}),
        ("apply_patch", {**patch, "dry_run": True}),
        ("apply_patch", patch),
        ("undo_changes", {"all_of_session": True, "plan_hash": approved, "dry_run": True}),
        ("read_audit_log", {}),
        ("session_status", {}),
        ("end_session", {}),
    ]
    for tool, arguments in calls:
        outcome = app.call(tool, {**executor, **arguments})
        assert outcome.output is not None, (tool, outcome.envelope)
        yield tool, outcome.output
    app.call("end_session", {"session_id": planner})


def test_every_answer_ends_at_32_kib_with_its_summary_first_and_the_way_on_last(app, workspace):
    tools = set()
    for tool, output in every_long_answer(app, workspace):
        tools.add(tool)
        names = list(output)

        assert size(output) <= ANSWER_BYTES, tool
        assert names[0] == "summary", tool
        assert {"truncated", "nextCursor", "next"} & set(names[:-2]) == set(), tool
        assert len(output["summary"]) <= 200, tool
        if tool in {"begin_session", "lint_plan", "apply_patch", "undo_changes", "read_plan", "read_files"}:
            assert output["truncated"], tool
    assert len(tools) == 16


def test_a_summary_names_the_next_call_and_says_once_that_lines_are_counted_from_0(app, workspace):
    app.call("begin_session", {"role": "WINDSURF"})
    read = app.call("read_file", {"path": "src/long"}).output
    hits = app.call("search_text", {"query": "needle"}).output
    plans = app.call("read_plan", {"plan_id": "PLAN-900"}).output

    assert f"call again with start_line {read['next']['start_line']} " in read["summary"].lower()
    assert f"of {60_000:,}, counted from 0" in read["summary"]
    assert "call again with nextCursor as cursor" in hits["summary"]
    assert f"start_line {plans['next']['start_line']}" in plans["summary"]
    assert all(output["summary"].count("counted from 0") == 1 for output in (read, hits, plans))


def test_a_plan_is_read_to_its_end_by_following_next(app, workspace):
    app.call("begin_session", {"role": "ANTIGRAVITY"})
    read = partial(app.call, "read_plan")
    pages = [read({"plan_id": "PLAN-900"}).output]
    while "next" in pages[-1]:
        pages.append(read({"plan_id": "PLAN-900", **pages[-1]["next"]}).output)

    assert len(pages) > 3
    assert "".join(page["content"] for page in pages) == (workspace / "plans/PLAN-900.md").read_text()


@pytest.mark.parametrize(
    ("tool", "arguments", "asked"),
    [
        ("read_file", {"path": "src/long"}, {"max_lines": 3_000}),
        ("search_text", {"query": "needle", "context_lines": 5}, {"pageSize": 200}),
        ("read_plan", {"plan_id": "PLAN-900"}, {"max_lines": 4_000}),
        ("list_plans", {}, {"pageSize": 150}),
    ],
)
@pytest.mark.parametrize("client", ["claude-code 2.1.197", "codex-mcp-client 0.169.0", None])
def test_more_is_returned_when_it_is_asked_for_whatever_the_client(app, tool, arguments, asked, client):
    session = app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
    request = CallRequest(tool, {**arguments, **asked, "session_id": session}, client)
    output = app.answer(app.stamp(request)).output

    assert ANSWER_BYTES < size(output) < Caps().response_bytes


def test_a_search_returns_50_hits_unless_it_is_asked_for_more(app):
    app.call("begin_session", {"role": "WINDSURF"})
    hits = [app.call("search_text", {"query": "needle", **more}).output["items"] for more in ({}, {"pageSize": 200})]

    assert list(map(len, hits)) == [50, 200]
    assert all(set(hit) == {"path", "range", "line"} for hit in hits[0])


@pytest.mark.parametrize(("client", "known"), CLIENTS.items())
def test_a_known_limit_of_the_client_only_lowers_the_size(make_app, workspace, client, known):
    sizes = []
    for configured in (None, 20_000, 100_000):
        section = f"[answers]\nbytes = {configured}\n" if configured else ""
        (workspace / "kaiza.toml").write_text(section)
        if configured == 100_000:
            write_adopted_settings(workspace, section)
        (workspace / "long").write_text("a" * 300_000)
        app = make_app(workspace)
        session = app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
        for name in (f"{client} 1.0", "another 1.0"):
            request = CallRequest("read_file", {"path": "long", "session_id": session}, name)
            sizes.append(size(app.answer(app.stamp(request)).output))
        app.close()

    limits = [ANSWER_BYTES, ANSWER_BYTES, 20_000, 20_000, known, 100_000]
    assert all(limit - 2_048 < found <= limit for found, limit in zip(sizes, limits, strict=True)), sizes


def test_a_client_that_names_itself_only_when_the_session_begins_is_known_in_every_call(make_app, workspace):
    write_adopted_settings(workspace, "[answers]\nbytes = 100000\n")
    (workspace / "long").write_text("a" * 300_000)
    app = make_app(workspace)
    begin = app.stamp(CallRequest("begin_session", {"role": "WINDSURF"}, "codex-mcp-client 0.169.0"))
    session = app.answer(begin).output["session_id"]
    read = app.stamp(CallRequest("read_file", {"path": "long", "session_id": session}))

    assert 40_000 < size(app.answer(read).output) <= 47_900


def test_a_record_too_long_for_an_answer_is_cut_and_whole_when_it_is_asked_for(app, workspace):
    approved = plan(workspace, scope=WIDE, more="limits: {files: 1000, lines: 100000, operations: 1000}\n")
    app.call("begin_session", {"role": "WINDSURF"})
    assert app.call("apply_patch", {"patch": patch_files(workspace), "plan_hash": approved}).output
    pages = [app.call("read_audit_log", {})]
    while "nextCursor" in pages[-1].output:
        pages.append(app.call("read_audit_log", {"cursor": pages[-1].output["nextCursor"]}))
    items = {item["seq"]: item for page in pages for item in page.output["items"]}
    cut = [seq for seq, item in items.items() if item["tool_name"] == "apply_patch" and "changes" not in item]
    whole = app.call("read_audit_log", {"since_seq": cut[0], "pageSize": 1}).output["items"][0]

    assert list(items) == list(range(1, len(items) + 1))
    assert all(size(page.output) <= ANSWER_BYTES for page in pages)
    assert any(f"Record {cut[0]} is cut." in note for page in pages for note in page.diagnostics)
    assert len(whole["changes"]) == PATCHED_FILES
