"""The schema files are served unchanged, and input and output conform to them."""

import json
import re

import pytest
from agents import HEAD, WIDE, Agent, plan, sha
from doors import call

from kaiza.domain.caps import Caps
from kaiza.store.config.schema_registry import SchemaRegistry, find_directory

REGISTRY = SchemaRegistry()
SAMPLES = {
    "string": "x",
    "integer": 1,
    "boolean": True,
    "array": [],
    "object": {"line": 0, "character": 0},
}


def sample(schema):
    """A value that fits a property's schema well enough to get to the next one."""
    if "enum" in schema:
        return schema["enum"][0]
    if "pattern" in schema:
        return next(value for value in ("0" * 64, "PLAN-1") if re.search(schema["pattern"], value))
    return SAMPLES[schema["type"]]


def above(schema):
    """Values above the limits of a property's schema."""
    if "maximum" in schema:
        yield schema["maximum"] + 1
    if "pattern" not in schema and schema.get("maxLength", 10**6) < 10**6:
        yield "x" * (schema["maxLength"] + 1)
    if "maxItems" in schema and schema["items"].get("type") == "string":
        yield ["x"] * (schema["maxItems"] + 1)


def invalid_arguments():
    """For every tool: a required argument missing, one of a wrong type, an unknown one, and values above each limit."""
    for name in TOOLS:
        schema = REGISTRY.load_tool_schemas(name).input
        good = {key: sample(schema["properties"][key]) for key in schema["required"]}
        yield name, "unknown", {**good, "zzz": 1}, "INVALID_INPUT_VALUE"
        for key in schema["required"]:
            yield name, f"no {key}", {other: good[other] for other in good if other != key}, "MISSING_REQUIRED_FIELD"
        for key, one in schema["properties"].items():
            if "$ref" not in one:
                yield (
                    name,
                    f"type of {key}",
                    {**good, key: 5 if one.get("type") == "object" else {}},
                    "INVALID_INPUT_TYPE",
                )
                yield from ((name, f"above {key}", {**good, key: value}, "INVALID_INPUT_VALUE") for value in above(one))


TOOLS = {row["id"] for row in REGISTRY.catalog() if row["category"] != "context"}
"""The tools whose errors and results have Kaiza's own form; those of context tools are fixed by another contract."""
INVALID = list(invalid_arguments())


@pytest.fixture
def agent(workspace):
    (workspace / "src").mkdir()
    (workspace / "src/a").write_text("here\n")
    agent = Agent(workspace)
    yield agent
    agent.close()


@pytest.mark.rows("S2-5", "S2-6", "S2-7", "S2-8", "S2-41")
def test_tools_list_sends_the_schema_files_unchanged(agent):
    listed = agent.ask("tools/list")["tools"]
    files = find_directory() / "tools"

    assert len(listed) >= 20
    for tool in listed:
        assert tool["inputSchema"] == json.loads((files / f"{tool['name']}.json").read_text())
        assert tool["outputSchema"] == json.loads((files / f"{tool['name']}.output.json").read_text())


@pytest.mark.rows("S2-23", "S2-24", "S2-42")
def test_arguments_beyond_their_schema_are_invalid_parameters_in_every_tool(make_app, workspace):
    app = make_app(workspace, allowed=["allow_checks"])
    app.call("begin_session", {"role": "WINDSURF"})
    answers = {(tool, why): app.call(tool, arguments).envelope for tool, why, arguments, _ in INVALID}
    expected = {(tool, why): code for tool, why, _, code in INVALID}

    assert {tool for tool, _ in answers} == TOOLS
    assert sum(why.startswith("above") for _, why in answers) >= 15
    assert {key: envelope["error_code"] for key, envelope in answers.items()} == expected
    assert {envelope["cause"]["class"] for envelope in answers.values()} == {"INVALID_PARAMS"}


def patch_of(old, new):
    return f"--- a/src/new\n+++ b/src/new\n@@ -1 +1 @@\n-{old}\n+{new}\n"


def every_call(workspace, approved):
    """A call of each tool of the executor that succeeds, in an order in which they all do."""
    new = {"path": "src/new", "plan_hash": approved}
    return {
        "server_info": {},
        "session_status": {},
        "read_file": {"path": "src/a"},
        "read_files": {"paths": ["src/a", "missing"]},
        "list_directory": {"path": "src"},
        "find_files": {"pattern": "**/*"},
        "search_text": {"query": "here"},
        "read_location": {"uri": f"file://{workspace}/src/a", "position": {"line": 0, "character": 1}},
        "file_info": {"path": "src/a"},
        "project_info": {},
        "project_assets_summary": {},
        "project_references_missing": {},
        "list_plans": {},
        "read_plan": {"plan_id": "PLAN-1"},
        "lint_plan": {"plan_id": "PLAN-1"},
        "write_file": {**new, "content": "one\n"},
        "edit_file": {**new, "expected_hash": sha(b"one\n"), "edits": [{"old_text": "one", "new_text": "two"}]},
        "apply_patch": {"patch": patch_of("two", "three"), "plan_hash": approved},
        "move_file": {
            "source": "src/new",
            "destination": "src/moved",
            "expected_hash": sha(b"three\n"),
            "plan_hash": approved,
        },
        "delete_file": {"path": "src/moved", "expected_hash": sha(b"three\n"), "plan_hash": approved},
        "undo_changes": {"all_of_session": True, "plan_hash": approved},
        "write_report": {"title": "t", "content": "c"},
        "read_audit_log": {},
        "verify_audit_log": {},
        "end_session": {},
    }


def counted(output):
    return "{calls} calls, {changes} changes, {refusals} refusals.".format(**output["counts"])


def change_sentence(output):
    verb = {"create": "Created", "modify": "Modified", "delete": "Deleted", "move": "Moved"}[output["operation"]]
    if "source" in output:
        return f"{verb} {output['source']} to {output['path']}."
    return f"{verb} {output['path']}, +{output['lines_added']} -{output['lines_removed']} lines."


def lines_sentence(output):
    first = output["start_line"]
    last = first + output["line_count"] - 1
    return f"Lines {first}\u2013{last} of {output['total_lines']}, counted from 0."


def audit_page(output):
    more = " More follow: call again with nextCursor as cursor." if "nextCursor" in output else ""
    return f"{len(output['items'])} records.{more}"


def begin_sentence(output):
    approved = sum(plan["status"] == "APPROVED" for plan in output["plans"])
    role = output["role"].capitalize()
    return f"{role} session open; plans that say APPROVED: {approved}; the log is {output['audit']['verdict']}."


SUMMARIES = {
    "begin_session": begin_sentence,
    "server_info": lambda output: f"Kaiza {output['server_version']}, {len(output['categories'])} tool categories.",
    "session_status": lambda output: f"{output['state']}: {counted(output)}",
    "read_file": lines_sentence,
    "read_files": lambda output: (
        f"{sum('content' in file for file in output['files'])} files read, 0 of them truncated, "
        f"{sum('error_code' in file for file in output['files'])} not read; lines counted from 0."
    ),
    "list_directory": lambda output: f"{len(output['items'])} entries.",
    "find_files": lambda output: f"{len(output['items'])} found.",
    "search_text": lambda output: (
        f"{len(output['items'])} hits in {len({item['path'] for item in output['items']})} files, lines counted from 0."
    ),
    "read_location": lambda output: (
        f"Lines {output['lines'][0]['line']}\u2013{output['lines'][-1]['line']}, counted from 0."
    ),
    "file_info": lambda output: f"{output['type']}, {output['size']} bytes, mode {output['mode']}.",
    "project_info": lambda output: f"{output['files']} files in {output['directories']} directories.",
    "project_assets_summary": lambda output: (
        f"{output['totalAssets']} files of {len(output['byType'])} types, {output['totalBytes']} bytes."
    ),
    "project_references_missing": lambda output: (
        f"{len(output['missingScripts'])} missing scripts, {len(output['brokenReferences'])} broken references."
    ),
    "list_plans": lambda output: f"{len(output['items'])} plan.",
    "read_plan": lambda output: f"{output['plan_id']}: {output['status']}, {len(output['findings'])} findings.",
    "lint_plan": lambda output: f"The plan is valid; {len(output['findings'])} findings.",
    "save_plan": lambda output: (
        f"{output['plan_id']} is a draft. Ask a person to approve it; list_plans then shows its plan_hash."
    ),
    "write_file": change_sentence,
    "edit_file": change_sentence,
    "apply_patch": lambda output: (
        f"Changed {output['files']} file, +{output['lines_added']} -{output['lines_removed']} lines."
    ),
    "move_file": change_sentence,
    "delete_file": change_sentence,
    "undo_changes": lambda output: f"Restored {len(output['changes'])} files, kept {len(output['kept'])}.",
    "write_report": lambda output: {
        ("active", False): "Report written. No role was locked.",
        ("active", True): "Report written. The role is unlocked.",
        ("locked", False): "Report written. Only a person can unlock now.",
    }[output["state"], output["unlocked"]],
    "read_audit_log": audit_page,
    "verify_audit_log": lambda output: f"The log is {output['verdict']}: {output['records']} records.",
    "end_session": lambda output: (
        "Session ended. Calls: {calls}, changes: {changes}, refusals: {refusals}.".format(**output["counts"])
        + f" Changed without Kaiza: {output['ungoverned_count']}. A person can review it: kaiza review"
    ),
}


HASHES = re.compile(r'"(?:[0-9a-f]{64}|[0-9a-f]{8}-[0-9a-f-]{27})"')


def results_of(agent, planner, workspace):
    """The result of a successful call of every tool but `run_checks`."""
    calls = every_call(workspace, plan(workspace, scope=WIDE))
    yield "begin_session", agent.begun_result
    for tool, arguments in calls.items():
        yield tool, agent.door.ask(call(tool, tool, **arguments))["result"]
    draft = HEAD.format(plan_id="PLAN-2", status="DRAFT", scope=WIDE, more="")
    yield "save_plan", planner.door.ask(call("save", "save_plan", plan_id="PLAN-2", content=draft))["result"]


@pytest.mark.rows("S2-28", "S2-30", "S2-34", "S2-36", "S2-43", "S4-18")
def test_the_output_of_every_tool_conforms_to_its_schema_and_its_summary_follows_from_the_rest(agent, workspace):
    planner = Agent(workspace, "ANTIGRAVITY")
    results = dict(results_of(agent, planner, workspace))
    planner.close()

    assert results.keys() | {"run_checks"} == TOOLS
    for tool, result in results.items():
        output = result["structuredContent"]
        assert not result["isError"], tool
        REGISTRY.load_tool_io(tool).output.validate(output)
        assert [json.loads(block["text"]) for block in result["content"]] == [output], tool
        assert 0 < len(output["summary"]) <= 200, tool
        assert output["summary"] == SUMMARIES[tool]({key: output[key] for key in output.keys() - {"summary"}}), tool


@pytest.mark.rows("S2-29")
def test_with_content_summary_the_text_of_every_result_is_its_summary_with_ids_and_hashes(workspace):
    (workspace / "src").mkdir()
    (workspace / "src/a").write_text("here\n")
    agent = Agent(workspace, options=["--content", "summary"])
    planner = Agent(workspace, "ANTIGRAVITY", options=["--content", "summary"])
    results = dict(results_of(agent, planner, workspace))
    agent.close()
    planner.close()

    assert len(results) == len(SUMMARIES)
    for tool, result in results.items():
        output = result["structuredContent"]
        (block,) = result["content"]
        summary, _, kept = block["text"].partition("\n")
        assert summary == output["summary"], tool
        # A record's arguments hold hashes of contents, which no call takes.
        passed_on = {} if tool == "read_audit_log" else output
        assert set(HASHES.findall(json.dumps(passed_on))) <= set(HASHES.findall(block["text"])), tool
        assert not kept or output.keys() >= json.loads(kept).keys(), tool
        REGISTRY.load_tool_io(tool).output.validate(output)


@pytest.mark.rows("S2-15")
def test_every_place_in_a_file_is_a_uri_and_a_position():
    inputs = {row["id"]: REGISTRY.load_tool_schemas(row["id"]).input for row in REGISTRY.catalog()}
    placed = {tool for tool, schema in inputs.items() if {"uri", "position"} & schema["properties"].keys()}
    bare = {tool for tool, schema in inputs.items() if {"line", "character", "column"} & schema["properties"].keys()}

    assert placed == {"read_location"}
    assert all({"uri", "position"} <= set(inputs[tool]["required"]) for tool in placed)
    assert all("path" not in inputs[tool]["properties"] for tool in placed)
    assert bare == set()


@pytest.mark.rows("S2-26")
def test_an_answer_too_large_for_a_response_is_refused_whole(make_app, workspace):
    (workspace / "src").mkdir()
    (workspace / "src/long").write_text('"' * 9000)
    app = make_app(workspace, caps=Caps(response_bytes=20_000))
    app.call("begin_session", {"role": "WINDSURF"})
    outcome = app.call("read_file", {"path": "src/long"})
    cause = outcome.envelope["cause"]

    assert (outcome.envelope["error_code"], cause["cap"]) == ("CAP_EXCEEDED", "response_bytes")
    assert cause["size"] > cause["limit"] == 20_000
    assert outcome.output is None


READS = {
    "read_file": {"path": "src/a"},
    "read_files": {"paths": ["src/b", "src/a", "missing"]},
    "list_directory": {"path": "src"},
    "find_files": {"path": "src", "pattern": "**/*"},
    "search_text": {"query": "here", "path": "src"},
    "file_info": {"path": "src/a"},
    "list_plans": {},
    "read_plan": {"plan_id": "PLAN-1"},
    "lint_plan": {"plan_id": "PLAN-1"},
    "server_info": {},
}


@pytest.mark.rows("S2-33")
def test_repeated_reads_are_byte_identical_across_servers(agent, workspace):
    for name in ("b", "c/d", "c/e"):
        (workspace / "src" / name).parent.mkdir(exist_ok=True)
        (workspace / "src" / name).write_text("here\n")
    plan(workspace)
    plan(workspace, "PLAN-2", status="DRAFT")
    other = Agent(workspace)
    calls = READS | {"read_location": {"uri": f"file://{workspace}/src/a", "position": {"line": 0, "character": 1}}}
    answers = [
        {tool: server.door.ask(call(tool, tool, **arguments))["result"] for tool, arguments in calls.items()}
        for server in (agent, agent, other)
    ]
    other.close()

    assert [tool for results in answers for tool, result in results.items() if result.get("isError")] == []
    for tool in calls:
        texts = {results[tool]["content"][0]["text"] for results in answers}
        bodies = {json.dumps(results[tool]["structuredContent"]) for results in answers}
        assert (len(texts), len(bodies)) == (1, 1), tool
        assert json.dumps(json.loads(texts.pop())) == bodies.pop(), tool
