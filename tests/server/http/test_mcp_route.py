"""Messages to /mcp: requests with and without a handshake, their headers, and the status of their answers."""

import base64
import json

import pytest
from doors import call, request
from http_doors import head, modern
from scenes import records

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def test_a_client_with_a_handshake_is_served_without_a_session_header(door):
    hello = door.post("/mcp", request(1, "initialize", **HELLO))
    note = door.post("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"})
    listed = door.post("/mcp", request("b", "tools/list"), MCP_Protocol_Version="2025-11-25")
    echoed = door.post("/mcp", call(2, "echo", text="x"), MCP_Protocol_Version="2024-11-05")

    assert hello.value["result"]["protocolVersion"] == "2025-11-25"
    assert "mcp-session-id" not in hello.headers
    assert (note.status, note.body) == (202, b"")
    assert (listed.value["id"], len(listed.value["result"]["tools"])) == ("b", 12)
    assert echoed.value["result"]["structuredContent"]["said"] is False
    assert {answer.headers["Content-Type"] for answer in (hello, listed, echoed)} == {"application/json"}


def test_conversations_are_never_shared_between_requests(door):
    door.post("/mcp", request(1, "initialize", **HELLO))
    output = door.post("/mcp", call(2, "echo")).value["result"]["structuredContent"]

    assert (output["said"], output["client"]) == (False, None)


def test_a_client_without_a_handshake_is_served(door):
    message, headers = modern(1, "server/discover")
    discovered = door.post("/mcp", message, **headers)
    message, headers = modern(2, "tools/call", name="echo", arguments={"text": "x"})
    called = door.post("/mcp", message, **headers)
    message, headers = modern(3, "tools/list")
    listed = door.post("/mcp", message, **headers)

    assert discovered.value["result"]["supportedVersions"] == ["2026-07-28"]
    assert (called.status, called.value["result"]["resultType"]) == (200, "complete")
    assert listed.value["result"]["ttlMs"] == 0


def test_an_invalid_request_is_refused_with_400(door):
    unnamed = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "echo"}}
    for message, code in ((b"", -32700), (b"[" * 5000, -32700), ([request(1, "ping")], -32600), (unnamed, -32600)):
        answer = door.post("/mcp", message)

        assert (answer.status, answer.error["code"]) == (400, code)
    assert door.records() == []


def test_errors_have_status_200_with_a_handshake_and_their_own_without(door):
    message, headers = modern(1, "no/such")
    unknown = door.post("/mcp", message, **headers)
    message, headers = modern(1, "tools/call", name="nope")
    no_tool = door.post("/mcp", message, **headers)
    message, headers = modern(1, "tools/call", name="fail")
    failed = door.post("/mcp", message, **headers)

    assert door.post("/mcp", request(1, "no/such")).status == 200
    assert door.post("/mcp", call(1, "nope")).status == 200
    assert (unknown.status, unknown.error["code"]) == (404, -32601)
    assert (no_tool.status, no_tool.error["code"]) == (400, -32602)
    assert (failed.status, failed.value["result"]["isError"]) == (200, True)


MISMATCHES = [
    {"MCP_Protocol_Version": "2025-11-25"},
    {"Mcp_Method": "tools/list"},
    {"Mcp_Method": "Tools/Call"},
    {"Mcp_Name": "other"},
    {"Mcp_Name": "Echo"},
    {"Mcp_Name": "=?base64?ZWNobw?="},
    {"Mcp_Name": "=?base64?/w==?="},
    {"MCP_Protocol_Version": None},
    {"Mcp_Method": None},
    {"Mcp_Name": None},
]


def test_a_header_that_differs_from_the_body_is_a_mismatch(door):
    message, right = modern(7, "tools/call", name="echo")
    for changed in MISMATCHES:
        headers = {name: value for name, value in {**right, **changed}.items() if value is not None}
        answer = door.post("/mcp", message, **headers)

        assert (answer.status, answer.value["id"], answer.error["code"]) == (400, 7, -32020), changed
        assert answer.error["data"]["error_code"] == "HEADER_MISMATCH"
    assert door.records() == []


def test_a_header_that_is_sent_twice_is_a_mismatch(door):
    message, headers = modern(7, "tools/list")
    body = json.dumps(message).encode()
    twice = head(Content_Length=len(body), **headers).replace(b"\r\n\r\n", b"\r\nMcp-Method: tools/list\r\n\r\n")
    status, answer = door.exchange(twice + body)

    assert (status, json.loads(answer)["error"]["code"]) == (400, -32020)


def test_a_discovery_without_headers_is_no_request_of_a_client_with_a_handshake(door):
    assert door.post("/mcp", request(1, "server/discover")).status == 400


def test_a_mismatch_names_both_values(door):
    message, headers = modern(7, "server/discover")
    answer = door.post("/mcp", message, **{**headers, "MCP_Protocol_Version": "2025-11-25"})

    assert b"2025-11-25" in answer.body
    assert b"2026-07-28" in answer.body


def test_a_name_in_base64_is_decoded(door):
    message, headers = modern(1, "tools/call", name="tööl")
    encoded = f"=?base64?{base64.b64encode('tööl'.encode()).decode()}?="
    answer = door.post("/mcp", message, **{**headers, "Mcp_Name": encoded})

    assert answer.error["data"]["error_code"] == "TOOL_NOT_FOUND"


@pytest.mark.parametrize("name", ["=?base64?ZWNobw?=", "=?base64?/w==?="])
def test_a_name_that_only_looks_encoded_must_be_encoded_itself(door, name):
    message, headers = modern(1, "tools/call", name=name)
    encoded = f"=?base64?{base64.b64encode(name.encode()).decode()}?="

    assert door.post("/mcp", message, **headers).error["data"]["error_code"] == "HEADER_MISMATCH"
    answer = door.post("/mcp", message, **{**headers, "Mcp_Name": encoded})
    assert answer.error["data"]["error_code"] == "TOOL_NOT_FOUND"


def test_methods_of_the_handshake_are_not_found_without_one(door):
    for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe"):
        message, headers = modern(1, method, **(HELLO if method == "initialize" else {}))
        answer = door.post("/mcp", message, **headers)

        assert (answer.status, answer.error["code"]) == (404, -32601)


def test_a_modern_header_without_meta_is_an_invalid_request(door):
    for version in ("2026-07-28", "1999-01-01"):
        answer = door.post("/mcp", request(1, "tools/list"), MCP_Protocol_Version=version)

        assert (answer.status, answer.error["code"]) == (400, -32602)


def test_an_unsupported_version_is_answered_with_the_supported_ones(door):
    message, headers = modern(1, "tools/list", version="2099-01-01")
    answer = door.post("/mcp", message, **headers)

    assert (answer.status, answer.error["code"]) == (400, -32022)
    assert answer.error["data"]["supported"] == ["2026-07-28"]


def test_a_whole_session_is_recorded_and_each_call_names_it(served, workspace):
    (workspace / "a.txt").write_text("hello\n")
    begun = served.post("/mcp", call(1, "begin_session", role="WINDSURF")).value["result"]["structuredContent"]
    unnamed = served.post("/mcp", call(2, "read_file", path="a.txt")).value["result"]
    named = served.post("/mcp", call(3, "read_file", path="a.txt", session_id=begun["session_id"])).value["result"]

    assert (unnamed["isError"], named["isError"]) == (True, False)
    assert [record["error_code"] for record in records(workspace)] == [None, "SESSION_NOT_INITIALIZED", None]
