"""The run log of a server over HTTP: the same lines as on stdio, with the path and the token's holder."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from doors import call, request
from http_doors import modern
from runs import MEMBERS, latest_run, run_files
from scenes import bind, records

FIXTURES = Path(__file__).parent.parent.parent / "unit" / "fixtures"
VOLATILE = {"ts", "runId", "attemptId", "requestId", "traceId", "spanId", "durationMs", "logPath"}


@pytest.fixture
def serve(open_http, workspace):
    def start(*options):
        return open_http(
            [
                *(sys.executable, "-m", "kaiza", "serve", "--workspace", str(bind(workspace))),
                *("--http", "127.0.0.1:0", *options),
            ]
        )

    return start


@pytest.mark.rows("S3-31", "S3-35", "S3-36", "S3-37")
def test_requests_of_every_route_are_logged(serve, workspace):
    door = serve("--no-auth")
    message, headers = modern("n", "tools/call", name="session_status", arguments={})
    door.post("/rpc", call(1, "begin_session", role="WINDSURF"))
    door.post("/rpc/read_file", request(2, "tools/call", tool="read_file", input={}))
    door.post("/mcp", message, **headers)
    door.post("/mcp", message, **{**headers, "Mcp_Method": "ping"})
    door.post("/rpc", b"{")
    door.post("/rpc/read_file", request(3, "tools/call", tool="nothing", arguments={}))
    status = door.end()
    lines = latest_run(workspace)

    assert status == 0
    assert all(list(line) == MEMBERS and line["transport"] == "http" for line in lines)
    assert [(line["route"], line["method"], line["status"]) for line in lines] == [
        ("/rpc", "tools/call", "ok"),
        ("/rpc/read_file", "tools/call", "error"),
        ("/mcp", "tools/call", "error"),
        ("/mcp", "tools/call", "error"),
        ("/rpc", None, "invalid_envelope"),
        ("/rpc/read_file", "tools/call", "error"),
    ]
    assert [line["error"] and line["error"]["code"] for line in lines] == [
        None,
        "MISSING_REQUIRED_FIELD",
        "SESSION_NOT_INITIALIZED",
        "HEADER_MISMATCH",
        "PARSE_ERROR",
        "INVALID_TOOL_INPUT",
    ]
    numbers = [line["metadata"]["auditSeq"] for line in lines]
    assert [number for number in numbers if number] == [record["seq"] for record in records(workspace)]


def test_a_call_names_its_principal_and_refusals_by_head_have_no_line(serve, workspace):
    door = serve()
    command = [sys.executable, "-m", "kaiza", "token", "new", "ann", "--workspace", str(workspace)]
    token = subprocess.run(command, capture_output=True, check=True, timeout=60, text=True).stdout.strip()
    message, headers = modern(1, "tools/call", name="begin_session", arguments={"role": "WINDSURF"})
    message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = {"name": "bob", "version": "1"}
    door.post("/mcp", message, Authorization=f"Bearer {token}", **headers)
    refused = door.post("/rpc", call(2, "server_info"), Authorization=f"Bearer {token}x")
    wrong_type = door.request("POST", "/mcp", b"{}", {"Content-Type": "text/plain", "Authorization": f"Bearer {token}"})
    health = door.request("GET", "/healthz")
    door.end()
    (line,) = latest_run(workspace)
    (record,) = [each for each in records(workspace) if each["kind"] == "call"]

    assert (refused.status, wrong_type.status, health.status) == (401, 415, 200)
    assert line["agentId"] == record["principal"]
    assert line["agentId"].startswith("ann#")
    assert token not in run_files(workspace)[0].read_text()


def test_a_call_that_is_answered_as_events_is_logged(serve, workspace):
    for number in range(600):
        (workspace / f"{number}.md").write_text("[x](missing)\n")
    door = serve("--no-auth")
    session = door.post("/rpc", call(1, "begin_session", role="WINDSURF")).value["result"]["structuredContent"]
    message = call(2, "project_references_missing", session_id=session["session_id"])
    message["params"]["_meta"] = {"progressToken": "p"}
    answer = door.post("/mcp", message)
    door.end()

    assert answer.status == 200
    assert [line["metadata"]["toolId"] for line in latest_run(workspace)] == [
        "begin_session",
        "project_references_missing",
    ]


@pytest.mark.rows("S3-28", "S3-42")
def test_a_refused_envelope_leaves_the_golden_events_over_http_and_stdio(serve, workspace):
    frame = (FIXTURES / "envelopes" / "invalid_missing_method.json").read_bytes().strip()
    golden = [json.loads(line) for line in (FIXTURES / "run_log.golden.jsonl").read_text().splitlines()]
    http = serve("--no-auth", "--deterministic")
    over_http = http.post("/rpc", frame).value
    http.end()
    events = latest_run(workspace)
    stdio = [sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace), "--deterministic"]
    served = subprocess.run(stdio, input=frame + b"\n", capture_output=True, check=True, timeout=60)
    events += latest_run(workspace)

    assert json.loads(served.stdout) == over_http
    assert [{name: event[name] for name in event if name not in VOLATILE} for event in events] == golden
    assert len(run_files(workspace)) == 2
