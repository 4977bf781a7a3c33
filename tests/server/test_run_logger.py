"""The run log of a server process: when it begins, and what its lines say of each request."""

import json
import os
import sys
import time
import uuid
from pathlib import Path

import pytest
from doors import call, request
from frames import frames
from hypothesis import HealthCheck, given, settings
from runs import MEMBERS, PLACE, latest_run, run_files
from scenes import bind, make_ready, records

from kaiza.domain.run_event import RunStamp, encode_event
from kaiza.server.dialects import load_dialects
from kaiza.server.pipeline import Exchange, Pipeline, to_call_request
from kaiza.server.run_logger import describe_exchange
from kaiza.store.config.editor_catalog import EditorCatalog
from kaiza.store.config.schema_registry import SchemaRegistry
from kaiza.wire import framing, message
from kaiza.wire.dialect import ServerDescription
from kaiza.wire.message import Notification, Request

INITIALIZE = request(
    "hello", "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"}
)
BEGIN = call("begin", "begin_session", role="WINDSURF")
PROBE = [
    INITIALIZE,
    request(1, "tools/list"),
    request(2, "ping"),
    request(3, "prompts/list"),
    request(4, "server/info"),
]
NO_METHOD = {"jsonrpc": "2.0", "id": "bad", "params": {}}


@pytest.fixture
def serve(open_door, workspace):
    def start(*options, root=workspace):
        return open_door([sys.executable, "-m", "kaiza", "serve", "--workspace", str(root), *options])

    return start


def columns(root, *names):
    return [tuple(line[name] for name in names) for line in latest_run(root)]


@pytest.mark.rows("S3-31")
@pytest.mark.parametrize("line", PROBE[1:], ids=lambda line: line["method"])
def test_a_single_request_leaves_a_run_log(serve, workspace, line):
    bind(workspace)
    served = serve()
    served.ask(line)
    served.rest()

    assert columns(workspace, "method") == [(line["method"],)]


def test_a_client_that_only_opens_the_connection_writes_no_run_log(serve, workspace):
    bind(workspace)
    before = sorted(workspace.rglob("*"))
    served = serve()
    served.ask(INITIALIZE)
    served.rest()

    assert sorted(workspace.rglob("*")) == before


def test_what_came_before_the_workspace_was_bound_is_written_too(serve, workspace):
    served = serve()
    for line in (*PROBE, BEGIN):
        served.ask(line)
    served.rest()

    assert columns(workspace, "method", "status") == [
        ("initialize", "ok"),
        ("tools/list", "ok"),
        ("ping", "ok"),
        ("prompts/list", "error"),
        ("server/info", "ok"),
        ("tools/call", "ok"),
    ]
    assert latest_run(workspace)[3]["error"]["code"] == "METHOD_NOT_FOUND"


@pytest.mark.rows("S3-37", "S3-39")
def test_a_refused_frame_begins_the_run_log(serve, workspace):
    bind(workspace)
    served = serve()
    served.ask(NO_METHOD)
    served.ask(b"not JSON")
    served.ask(request("", "ping"))
    served.rest()
    first, second, third = latest_run(workspace)

    assert (first["status"], first["method"], first["route"]) == ("invalid_envelope", None, None)
    assert first["error"] == {
        "code": "INVALID_ENVELOPE",
        "message": "Invalid MCP envelope",
        "details": {"missing": ["method"]},
    }
    assert (second["status"], second["error"]["code"]) == ("invalid_envelope", "PARSE_ERROR")
    assert third["error"]["details"] == {"invalid": ["id"]}


def test_at_most_64_earlier_requests_are_written(serve, workspace):
    served = serve()
    served.say(*(request(number, "ping") for number in range(100)), BEGIN)
    served.rest()

    assert len(latest_run(workspace)) == 64
    assert latest_run(workspace)[-1]["metadata"]["toolId"] == "begin_session"


def test_every_call_names_its_record_and_its_dialect(serve, workspace):
    (workspace / "a.txt").write_text("text\n")
    served = serve()
    session = served.ask(BEGIN)["result"]["structuredContent"]["session_id"]
    arguments = {"path": "a.txt", "session_id": session}
    answers = [
        served.ask(request(1, "tools/call", name="read_file", arguments=arguments)),
        served.ask(request(2, "tools/call", tool="read_file", arguments=arguments)),
        served.ask(request(3, "tools/call", tool="read_file", input=arguments)),
        served.ask(request(4, "tools/call", tool="read_file", input={"session_id": session, "odd": 1})),
        served.ask(request(5, "tools/call", name="nothing")),
        served.ask(request(6, "tools/call", name="read_file", tool="read_file")),
        served.ask(request(7, "tools/call", tool="mcp.server.info", input={})),
    ]
    served.rest()
    # A line is written after its answer, so the next one may overtake it.
    _, *lines = sorted(latest_run(workspace), key=lambda line: line["metadata"]["auditSeq"])
    written = {record["seq"]: record["error_code"] for record in records(workspace)}

    assert len(answers) == len(lines) == 7
    assert lines[6]["metadata"]["toolId"] == "server_info"
    assert [line["metadata"]["dialect"] for line in lines[:4]] == ["mcp", "editor", "canonical", "canonical"]
    assert [line["error"] and line["error"]["code"] for line in lines] == [
        written[line["metadata"]["auditSeq"]] for line in lines
    ]
    assert lines[3]["error"]["details"] == {"missing": ["path"], "unknown": 1}
    assert [line["error"]["code"] for line in lines[4:6]] == ["TOOL_NOT_FOUND", "INVALID_PARAMS"]


def test_sizes_are_those_of_request_and_answer(serve, workspace):
    served = serve()
    served.say(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', BEGIN)
    served.rest()
    pinged = latest_run(workspace)[0]

    assert pinged["inputBytes"] == len(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert pinged["outputBytes"] == len(b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
    assert pinged["durationMs"] >= 0


def test_an_overlong_line_is_a_refused_frame(serve, workspace):
    bind(workspace)
    served = serve()
    served.say(b"x" * (framing.MAX_LINE + 5))
    served.hear()
    served.rest()
    (line,) = latest_run(workspace)

    assert (line["status"], line["inputBytes"], line["error"]["details"]) == (
        "invalid_envelope",
        framing.MAX_LINE + 5,
        {},
    )


def test_an_id_that_looks_like_a_result_does_not_hide_an_error(serve, workspace):
    served = serve()
    served.say(request('","result":{},"error":{', "prompts/list"), request(',"error":{', "ping"), BEGIN)
    served.rest()

    assert columns(workspace, "status")[:2] == [("error",), ("ok",)]


def test_a_result_that_quotes_an_error_is_logged_as_a_success():
    answer = message.result("a", b'{"a":1,"error":{"code":-32000}}')

    assert describe_exchange(Exchange(Request("a", "server/info", {}), 9, 0.0, answer=answer)).error is None


def test_no_runs_turns_the_run_log_off(serve, workspace):
    bind(workspace)
    served = serve("--no-runs")
    served.ask(BEGIN)
    served.ask(NO_METHOD)
    served.rest()

    assert len(records(workspace)) == 1
    assert not (workspace / ".kaiza" / "runs").exists()


def test_a_foreign_workspace_has_no_run_log(serve, tmp_path):
    moved = bind(make_ready(tmp_path / "original")).rename(tmp_path / "moved")
    served = serve(root=moved)
    served.ask(BEGIN)
    served.ask(NO_METHOD)
    served.rest()

    assert not (moved / ".kaiza" / "runs").exists()


def test_the_link_is_relative_and_stays_valid_when_the_workspace_is_read_elsewhere(serve, workspace, tmp_path):
    served = serve()
    served.ask(BEGIN)
    served.rest()
    (path,) = run_files(workspace)
    workspace.rename(tmp_path / "elsewhere")

    assert os.readlink(Path(tmp_path, "elsewhere", PLACE, ".latest")) == path.name
    assert len(latest_run(tmp_path / "elsewhere")) == 1


@pytest.mark.rows("S3-7", "S3-41")
def test_two_deterministic_runs_leave_the_same_run_log(serve, tmp_path):
    written = []
    for name in ("one", "two"):
        root = make_ready(tmp_path / name)
        served = serve("--deterministic", root=root)
        for line in (INITIALIZE, BEGIN, NO_METHOD, call(1, "read_file", path="missing"), call(2, "server_info")):
            served.ask(line)
        served.rest()
        written.append([(path.name, path.read_bytes()) for path in run_files(root)])

    assert written[0] == written[1]
    assert len(latest_run(tmp_path / "one")) == 5
    assert {uuid.UUID(line["requestId"]).version for line in latest_run(tmp_path / "one")} == {5}


def answer_frame(app, line):
    """Answer a frame as a transport does; what it reports to the run log, None for a notification."""
    pipeline = Pipeline(
        load_dialects(ServerDescription("1", "", list, lambda: EditorCatalog(SchemaRegistry(), app.services.offer)))
    )
    parsed = pipeline.parse_line(line)
    if isinstance(parsed, Notification):
        return None
    answer, incoming, _ = pipeline.next_action(parsed)
    exchange = Exchange(parsed, len(line), time.monotonic(), line=line, answer=answer or b"", incoming=incoming)
    if incoming is None:
        return exchange
    outcome = app.answer(app.stamp(to_call_request(incoming.call)))
    return exchange._replace(answer=incoming.encode(outcome), outcome=outcome)


def strings(value):
    """All strings in a line, names of members not among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


@pytest.mark.rows("S3-37", "S3-39")
@given(frames)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_frame_becomes_one_line_that_agrees_with_its_answer(begun, frame):
    exchange = answer_frame(begun, frame)
    if exchange is None:
        return
    event = describe_exchange(exchange, is_deterministic=True)
    line = encode_event(event, RunStamp("run", "now", event.ids, is_deterministic=True))
    members, answer = json.loads(line), json.loads(exchange.answer)
    failed = answer["result"].get("isError", False) if "result" in answer else True

    assert line.isascii()
    assert (line.count(b"\n"), line[-1:]) == (1, b"\n")
    assert list(members) == MEMBERS
    assert (members["status"] != "ok") is (members["error"] is not None) is failed
    assert all(len(text) <= 200 for text in strings(members))
    if failed and "error_code" in answer.get("error", {}).get("data", {}):
        assert members["error"]["code"] == answer["error"]["data"]["error_code"]


def test_a_line_that_was_not_decoded_is_not_decoded_for_the_log(monkeypatch):
    line = b'{"id":1,' + b'"x":[],' * 100_000 + b'"x":1}'
    parsed = message.parse(line)
    monkeypatch.setattr(framing, "decode_again", None)
    event = describe_exchange(Exchange(parsed, len(line), 0.0, line=line, answer=message.rejection(parsed)))

    assert (event.method, event.error.code) == (None, "PARSE_ERROR")
