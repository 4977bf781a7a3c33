"""The trace that a client's call is part of, in its record."""

import json

import pytest
from agents import Agent, plan
from doors import request
from scenes import records

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def agent(workspace):
    agent = Agent(workspace)
    try:
        yield agent
    finally:
        agent.close()


def traced(agent, trace, tool, **arguments):
    message = request(99, "tools/call", name=tool, arguments=arguments, _meta={"traceparent": trace})
    return agent.door.ask(message)["result"]


def test_a_calls_record_has_the_trace_whether_it_succeeds_fails_or_changes_a_file(agent, workspace):
    (workspace / "a.txt").write_text("a\n")
    approved = plan(workspace, scope='{create: ["src/**"]}')
    results = [
        traced(agent, TRACE, "read_file", path="a.txt"),
        traced(agent, TRACE, "read_file", path="none.txt"),
        traced(agent, TRACE, "write_file", path="src/b.txt", content="b\n", plan_hash=approved),
        traced(agent, "00-no-trace-01", "read_file", path="a.txt"),
    ]
    calls = [each for each in records(workspace) if each["kind"] == "call"][1:]

    assert [bool(result.get("isError")) for result in results] == [False, True, False, False]
    assert [(each["detail"] or {}).get("traceparent") for each in calls] == [TRACE, TRACE, TRACE, None]
    assert "traceparent" not in json.loads(results[1]["content"][0]["text"])
