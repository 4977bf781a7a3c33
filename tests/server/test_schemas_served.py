"""The schema files are served unchanged, and input and output conform to them."""

import json
import re

import pytest
from agents import Agent, plan, sha
from doors import call

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
    for name in (row["id"] for row in REGISTRY.catalog()):
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

    assert {tool for tool, _ in answers} == {row["id"] for row in REGISTRY.catalog()}
    assert sum(why.startswith("above") for _, why in answers) >= 15
    assert {key: envelope["error_code"] for key, envelope in answers.items()} == expected
    assert {envelope["cause"]["class"] for envelope in answers.values()} == {"INVALID_PARAMS"}


@pytest.mark.rows("S2-28", "S2-29", "S2-30", "S2-34", "S2-43", "S4-18")
def test_tool_output_conforms_to_its_schema(agent, workspace):
    approved = plan(workspace)
    calls = {
        "session_status": {},
        "read_file": {"path": "src/a"},
        "read_files": {"paths": ["src/a", "missing"]},
        "list_directory": {"path": "src"},
        "find_files": {"pattern": "**/*"},
        "search_text": {"query": "here"},
        "file_info": {"path": "src/a"},
        "list_plans": {},
        "read_plan": {"plan_id": "PLAN-1"},
        "lint_plan": {"plan_id": "PLAN-1"},
        "write_file": {"path": "src/a", "content": "x\n", "expected_hash": sha(b"here\n"), "plan_hash": approved},
        "undo_changes": {"all_of_session": True, "plan_hash": approved},
        "write_report": {"title": "t", "content": "c"},
        "read_audit_log": {},
        "verify_audit_log": {},
        "server_info": {},
        "end_session": {},
    }
    for number, (tool, arguments) in enumerate(calls.items(), 1000):
        params = {"name": tool, "arguments": arguments}
        answer = agent.door.ask({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        result = answer["result"]
        output = result["structuredContent"]

        assert "error" not in answer
        assert not result.get("isError"), tool
        REGISTRY.load_tool_io(tool).output.validate(output)
        assert json.loads(result["content"][0]["text"]) == output
        assert 0 < len(output["summary"]) <= 200


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
