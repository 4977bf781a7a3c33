import json

import orjson
import pytest

from kaiza.domain import error_codes
from kaiza.domain.call import Outcome, Receipt
from kaiza.wire.dialect import Conversation
from kaiza.wire.dialects import mcp_result
from kaiza.wire.dialects.mcp import HANDSHAKE_VERSIONS, McpDialect, ServerDescription
from kaiza.wire.dialects.mcp_result import ResultFormat
from kaiza.wire.message import Request

TOOLS = [{"name": "echo", "inputSchema": {"type": "object"}}, {"name": "add", "inputSchema": {"type": "object"}}]
DIALECT = McpDialect(ServerDescription("1.2.3", "Be careful.", lambda: TOOLS))
FRESH = Conversation()
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "modern", "version": "9"},
}
CLIENT = {"capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
ENVELOPE = {"error_code": "FILE_NOT_FOUND", "human_message": "No such file. List the directory.", "cause": {"n": 1}}
RECEIPT = Receipt(41, "ab" * 32)


def hear(method, params=None, so_far=FRESH):
    return DIALECT.decode(Request(1, method, params or {}), so_far)


def answer(method, params=None, so_far=FRESH):
    return json.loads(hear(method, params, so_far).answer)


def initialized():
    return hear("initialize", {"protocolVersion": "2025-06-18", **CLIENT}).conversation


def told(outcome, form=None):
    line = mcp_result.encode_result("x", outcome, form or ResultFormat())

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return json.loads(line)


@pytest.mark.parametrize("asked", [*HANDSHAKE_VERSIONS, "2026-07-28", "2099-01-01", "latest", ""])
def test_initialize_agrees_on_the_version_asked_for_or_the_newest_with_a_handshake(asked):
    result = answer("initialize", {"protocolVersion": asked, **CLIENT})["result"]

    assert result["protocolVersion"] == (asked if asked in HANDSHAKE_VERSIONS else "2025-11-25")
    assert result["serverInfo"] == {"name": "kaiza", "title": "Kaiza", "version": "1.2.3"}
    assert result["instructions"] == "Be careful."


@pytest.mark.parametrize("lacking", ["protocolVersion", "capabilities", "clientInfo"])
def test_initialize_without_what_it_needs_is_refused_and_opens_nothing(lacking):
    params = {"protocolVersion": "2025-06-18", **CLIENT}
    del params[lacking]
    heard = hear("initialize", params)

    assert json.loads(heard.answer)["error"]["code"] == -32602
    assert heard.conversation == FRESH


def test_a_session_may_be_implied_only_after_initialize():
    call = {"name": "echo", "arguments": {}}

    assert hear("tools/call", call).call.conversational is False
    assert hear("tools/call", call, initialized()).call.conversational is True
    assert hear("tools/call", {**call, "_meta": MODERN}, initialized()).call.conversational is False


def test_the_client_is_named_as_it_claims_to_be_in_both_eras():
    call = {"name": "echo"}

    assert hear("tools/call", call, initialized()).call.client == "old 1"
    assert hear("tools/call", {**call, "_meta": MODERN}, initialized()).call.client == "modern 9"


@pytest.mark.parametrize("given", [{}, {"a": 1}, [], None, 5, "x"])
def test_arguments_are_passed_on_as_they_are(given):
    assert hear("tools/call", {"name": "echo", "arguments": given}).call.arguments == given


@pytest.mark.parametrize("params", [{}, {"name": None}, {"name": 5}, {"arguments": {}}])
def test_a_call_without_a_name_is_no_call(params):
    heard = hear("tools/call", params)

    assert heard.call is None
    assert json.loads(heard.answer)["error"]["code"] == -32602


def test_the_list_is_the_tools_as_they_are_in_their_order():
    assert answer("tools/list")["result"] == {"tools": TOOLS}
    assert answer("tools/list", {"_meta": MODERN})["result"]["tools"] == TOOLS


def test_a_cursor_of_the_list_is_refused_because_there_is_one_page():
    for cursor, error_code in (("abc", "CURSOR_INVALID"), ("", "CURSOR_INVALID"), (5, "INVALID_PARAMS")):
        error = answer("tools/list", {"cursor": cursor})["error"]

        assert error["code"] == -32602
        assert error["data"]["error_code"] == error_code


def test_a_modern_result_says_that_it_is_complete_whose_it_is_and_how_long_it_keeps():
    for method in ("tools/list", "server/discover"):
        result = answer(method, {"_meta": MODERN})["result"]

        assert result["resultType"] == "complete"
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["version"] == "1.2.3"
        assert result["ttlMs"] >= 0
        assert result["cacheScope"] in ("public", "private")


def test_discovery_and_initialize_are_both_served_on_one_pipe_in_either_order():
    discovered = hear("server/discover", {"_meta": MODERN})
    then = hear("initialize", {"protocolVersion": "2025-11-25", **CLIENT}, discovered.conversation)
    again = hear("server/discover", {"_meta": MODERN}, then.conversation)

    assert json.loads(discovered.answer)["result"]["supportedVersions"] == ["2026-07-28"]
    assert json.loads(then.answer)["result"]["protocolVersion"] == "2025-11-25"
    assert "result" in json.loads(again.answer)
    assert "result" in answer("ping", so_far=again.conversation)


@pytest.mark.parametrize("key", ["protocolVersion", "clientCapabilities"])
def test_a_modern_request_without_its_envelope_is_refused(key):
    meta = {name: value for name, value in MODERN.items() if not name.endswith(key)}

    assert answer("server/discover", {"_meta": meta})["error"]["code"] == -32602
    assert answer("server/discover")["error"]["code"] == -32602
    assert answer("tools/list", {"_meta": meta}, Conversation(modern=True))["error"]["code"] == -32602


def test_a_version_that_is_not_served_is_named_beside_those_that_are():
    meta = {**MODERN, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}
    error = answer("tools/list", {"_meta": meta})["error"]

    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2027-01-01"}


def test_ping_belongs_to_the_eras_with_a_handshake():
    assert answer("ping")["result"] == {}
    assert answer("ping", {"_meta": MODERN})["error"]["code"] == -32601


@pytest.mark.parametrize("method", ["nope", "read_file", "resources/list", "notifications/initialized", "tools/Call"])
def test_a_method_that_is_not_there_is_said_so(method):
    assert answer(method)["error"]["code"] == -32601
    assert answer(method, {"_meta": MODERN})["error"]["code"] == -32601


def test_a_success_is_structured_and_once_more_as_text():
    output = {"path": "a.txt", "content": 'line\n"quoted" \u2028 \N{GRINNING FACE} \\', "summary": "one line"}
    result = told(Outcome("read_file", output=output, receipt=RECEIPT))["result"]

    assert result == {
        "content": [{"type": "text", "text": orjson.dumps(output).decode()}],
        "structuredContent": output,
        "isError": False,
        "_meta": {"kaiza/receipt": {"seq": 41, "entry_hash": "ab" * 32}},
    }


def test_a_summary_takes_the_place_of_the_text_where_that_is_asked_for():
    result = told(Outcome("echo", output={"a": 1, "summary": "one thing"}), ResultFormat(summary=True))["result"]

    assert result["content"] == [{"type": "text", "text": "one thing"}]
    assert result["structuredContent"] == {"a": 1, "summary": "one thing"}


def test_a_failure_is_its_envelope_and_nothing_structured():
    failed = Outcome("read_file", envelope=ENVELOPE, code=error_codes.lookup("FILE_NOT_FOUND"), receipt=RECEIPT)
    result = told(failed)["result"]

    assert result["isError"] is True
    assert "structuredContent" not in result
    assert [json.loads(block["text"]) for block in result["content"]] == [ENVELOPE]
    assert result["content"][0]["text"] == orjson.dumps(ENVELOPE).decode()
    assert result["_meta"] == {"kaiza/receipt": RECEIPT.as_json()}


def test_evidence_is_a_second_block():
    evidence = {"expected": ["a"], "found": ["b"]}
    failed = Outcome("edit_file", envelope=ENVELOPE, code=error_codes.lookup("PATCH_APPLY_FAILED"), evidence=evidence)

    assert [json.loads(block["text"]) for block in told(failed)["result"]["content"]] == [ENVELOPE, evidence]


@pytest.mark.parametrize("error_code", ["TOOL_NOT_FOUND", "INVALID_PARAMS"])
def test_a_call_that_is_none_is_an_error_of_the_protocol_with_the_envelope_in_its_data(error_code):
    envelope = {**ENVELOPE, "error_code": error_code}
    error = told(Outcome("zip", envelope=envelope, code=error_codes.lookup(error_code)))["error"]

    assert error["code"] == -32602
    assert error["data"] == envelope


@pytest.mark.parametrize("outcome", [Outcome("a", output={}), Outcome("a", envelope=ENVELOPE)])
def test_a_modern_result_of_a_call_carries_type_server_and_receipt(outcome):
    kept = Outcome(outcome.tool_name, outcome.output, outcome.envelope, receipt=RECEIPT)
    result = told(kept, ResultFormat(modern_meta=DIALECT.modern_meta))["result"]

    assert result["resultType"] == "complete"
    assert result["_meta"].keys() == {"io.modelcontextprotocol/serverInfo", "kaiza/receipt"}


def test_the_tools_are_asked_for_once_and_only_when_somebody_wants_them():
    asked = []
    dialect = McpDialect(ServerDescription("1", "", lambda: asked.append(1) or TOOLS))
    for method, params in (("ping", {}), ("tools/list", {}), ("tools/list", {"_meta": MODERN}), ("tools/list", {})):
        dialect.decode(Request(1, method, params), FRESH)

    assert asked == [1]
