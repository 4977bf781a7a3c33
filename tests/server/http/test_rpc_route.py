"""Messages to /rpc: the HTTP status is that of the error code."""

import pytest
from doors import call, request
from scenes import records


@pytest.mark.rows("S3-18", "S3-29", "S4-62")
@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        (b"{", 400, "PARSE_ERROR"),
        ({"jsonrpc": "2.0", "id": 1, "params": {}}, 400, "INVALID_ENVELOPE"),
        ([request(1, "ping")], 400, "INVALID_ENVELOPE"),
        (request(1, "no/such"), 404, "METHOD_NOT_FOUND"),
        (request(1, "tools/call", arguments={}), 400, "INVALID_PARAMS"),
        (request(1, "tools/call", name="nope"), 404, "TOOL_NOT_FOUND"),
    ],
)
def test_an_error_has_the_status_of_its_code(served, message, status, code):
    answer = served.post("/rpc", message)

    assert (answer.status, answer.error["data"]["error_code"]) == (status, code)


def test_the_path_may_name_the_tool(door):
    assert door.post("/rpc/echo", call(1, "echo")).status == 200
    assert door.post("/rpc/%65cho", call(1, "echo")).status == 422


def test_a_call_to_the_path_of_another_tool_is_refused_and_recorded(served, workspace):
    answer = served.post("/rpc/read_file", call(1, "begin_session", role="WINDSURF"))

    assert (answer.status, answer.error["code"]) == (422, -32602)
    assert [record["error_code"] for record in records(workspace)] == ["INVALID_TOOL_INPUT"]


def canonical(tool, **arguments):
    return request(1, "tools/call", tool=tool, input=arguments)


@pytest.mark.rows("S3-20", "S3-22")
@pytest.mark.parametrize(("tool", "status"), [("read_file", 422), ("nope", 404)])
def test_a_canonical_error_has_the_status_of_the_table(served, tool, status):
    session = served.post("/rpc", canonical("begin_session", role="WINDSURF")).value["result"]["output"]["session_id"]
    answer = served.post("/rpc", canonical(tool, session_id=session))

    assert (answer.status, answer.error["data"]["http_status"]) == (status, status)


@pytest.mark.rows("S3-24")
def test_an_internal_error_has_status_500_in_every_dialect(door):
    editor = request(1, "tools/call", tool="fail", arguments={"error_code": "INTERNAL_ERROR"})

    assert door.post("/rpc", canonical("fail", error_code="INTERNAL_ERROR")).status == 500
    assert door.post("/rpc", editor).status == 500
    assert door.post("/rpc", call(1, "fail", error_code="INTERNAL_ERROR")).status == 500


@pytest.mark.rows("S3-12")
def test_the_path_is_compared_with_the_tool_as_it_was_requested(door):
    assert door.post("/rpc/echo", canonical("echo")).status == 200
    assert door.post("/rpc/echo", canonical("hold")).status == 422
    assert door.post("/rpc/echo", request(1, "tools/call", tool="hold", arguments={})).status == 422


def test_other_dialects_are_not_served_on_the_route_of_mcp(served, workspace):
    answers = [
        served.post("/mcp", canonical("begin_session", role="WINDSURF")),
        served.post("/mcp", request(1, "server/info")),
        served.post("/mcp", request(1, "tools/list", tier="core")),
    ]

    assert {answer.error["data"]["error_code"] for answer in answers} == {"INVALID_PARAMS"}
    assert [record["error_code"] for record in records(workspace)] == ["INVALID_PARAMS"]
