"""Requests over HTTP in the run log."""

import json
import sys

import pytest
from doors import call, request
from http_doors import modern
from scenes import bind, records


@pytest.fixture
def start(open_http, workspace):
    bind(workspace)

    def open_one(*words):
        command = [sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace), "--http", "127.0.0.1:0"]
        return open_http([*command, "--no-auth", *words])

    return open_one


def lines(workspace):
    directory = workspace / ".kaiza" / "runs" / "mcp_server" / "envelope_validation"
    files = [path for path in directory.glob("*.jsonl") if not path.is_symlink()] if directory.exists() else []
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def test_each_request_is_one_line_with_its_route(start, workspace):
    door = start()
    door.post("/mcp", request(1, "ping"))
    door.post("/rpc", b"{")
    door.post("/rpc/begin_session", call(2, "begin_session", role="WINDSURF"))
    message, headers = modern(3, "no/such")
    door.post("/mcp", message, **headers)
    door.post("/rpc/read_file", call(4, "begin_session", role="WINDSURF"))
    door.end()
    events = lines(workspace)

    assert [(event["transport"], event["route"], event["method"]) for event in events] == [
        ("http", "/mcp", "ping"),
        ("http", "/rpc", None),
        ("http", "/rpc/begin_session", "tools/call"),
        ("http", "/mcp", "no/such"),
        ("http", "/rpc/read_file", "tools/call"),
    ]
    assert [event["error"] and event["error"]["code"] for event in events] == [
        *(None, "PARSE_ERROR", None, "METHOD_NOT_FOUND", "INVALID_TOOL_INPUT")
    ]
    assert events[2]["metadata"]["auditSeq"] == records(workspace)[0]["seq"]


def test_requests_that_are_refused_by_their_head_leave_no_line(start, workspace):
    door = start()
    door.request("GET", "/mcp")
    door.request("POST", "/mcp", b"{}", {"Content-Type": "text/plain"})
    door.post("/rpc", call(2, "begin_session", role="WINDSURF"))
    door.end()

    assert [event["route"] for event in lines(workspace)] == ["/rpc"]


def test_no_run_log_is_kept_with_no_runs(start, workspace):
    door = start("--no-runs")
    door.post("/rpc", call(2, "begin_session", role="WINDSURF"))
    door.end()

    assert lines(workspace) == []
