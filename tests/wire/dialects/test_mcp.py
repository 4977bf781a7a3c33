import json

import orjson
import pytest

from kaiza.domain import error_codes
from kaiza.domain.call import Outcome, Receipt
from kaiza.wire.dialect import Conversation, ServerDescription
from kaiza.wire.dialects import mcp_result
from kaiza.wire.dialects.mcp import McpDialect
from kaiza.wire.dialects.mcp_result import ResultFormat
from kaiza.wire.message import Request
from kaiza.wire.protocol_versions import HANDSHAKE_VERSIONS

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


def decode(method, params=None, conversation=FRESH):
    return DIALECT.decode(Request(1, method, params or {}), conversation)


def answer(method, params=None, conversation=FRESH):
    return json.loads(decode(method, params, conversation).answer)


def initialized():
    return decode("initialize", {"protocolVersion": "2025-06-18", **CLIENT}).conversation


def encode(outcome, result_format=None):
    line = mcp_result.encode_result("x", outcome, result_format or ResultFormat())

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return json.loads(line)


@pytest.mark.parametrize("requested", [*HANDSHAKE_VERSIONS, "2026-07-28", "2099-01-01", "latest", ""])
def test_initialize_agrees_on_the_requested_version_or_offers_the_newest(requested):
    result = answer("initialize", {"protocolVersion": requested, **CLIENT})["result"]

    assert result["protocolVersion"] == (requested if requested in HANDSHAKE_VERSIONS else "2025-11-25")
    assert result["serverInfo"] == {"name": "kaiza", "title": "Kaiza", "version": "1.2.3"}
    assert result["instructions"] == "Be careful."


@pytest.mark.parametrize("missing", ["protocolVersion", "capabilities", "clientInfo"])
def test_initialize_without_a_required_param_is_refused_and_opens_no_conversation(missing):
    params = {"protocolVersion": "2025-06-18", **CLIENT}
    del params[missing]
    decoded = decode("initialize", params)

    assert json.loads(decoded.answer)["error"]["code"] == -32602
    assert decoded.conversation == FRESH


def test_a_session_may_be_implied_only_after_initialize():
    call = {"name": "echo", "arguments": {}}

    assert decode("tools/call", call).call.conversational is False
    assert decode("tools/call", call, initialized()).call.conversational is True
    assert decode("tools/call", {**call, "_meta": MODERN}, initialized()).call.conversational is False


def test_the_client_name_is_taken_from_the_handshake_or_from_meta():
    call = {"name": "echo"}

    assert decode("tools/call", call, initialized()).call.client == "old 1"
    assert decode("tools/call", {**call, "_meta": MODERN}, initialized()).call.client == "modern 9"


@pytest.mark.parametrize("arguments", [{}, {"a": 1}, [], None, 5, "x"])
def test_arguments_are_passed_on_unchanged(arguments):
    assert decode("tools/call", {"name": "echo", "arguments": arguments}).call.arguments == arguments


@pytest.mark.parametrize("params", [{}, {"name": None}, {"name": 5}, {"arguments": {}}])
def test_a_call_without_a_tool_name_is_passed_on_to_be_recorded(params):
    decoded = decode("tools/call", params)

    assert decoded.answer is None
    assert decoded.call.tool_name == "unknown"


@pytest.mark.parametrize(
    ("token", "taken"),
    [
        *(("t", "t"), (7, 7), (True, None), (None, None), ([], None), (1.5, None)),
        *(("x" * 256, "x" * 256), ("x" * 257, None), (2**53, 2**53), (10**5000, None), (-(2**64), None)),
    ],
    ids=range(11),
)
def test_a_progress_token_is_a_short_string_or_an_integer(token, taken):
    params = {"name": "echo", "_meta": {"progressToken": token}}

    assert decode("tools/call", params).call.progress_token == taken


def test_tools_are_listed_unchanged_and_in_order():
    assert answer("tools/list")["result"] == {"tools": TOOLS}
    assert answer("tools/list", {"_meta": MODERN})["result"]["tools"] == TOOLS


@pytest.mark.parametrize(
    ("name", "has_schemas"), [("gemini-cli-mcp-client", False), ("gemini-cli-mcp-clients", True), ("other", True)]
)
def test_gemini_gets_the_tools_without_the_schemas_with_which_it_would_hide_refusals(name, has_schemas):
    tools = [{**tool, "outputSchema": {"type": "object"}} for tool in TOOLS]
    dialect = McpDialect(ServerDescription("1.2.3", "Be careful.", lambda: tools))
    client = {"name": name, "version": "0.61.0"}
    hello = Request(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
    conversation = dialect.decode(hello, FRESH).conversation
    meta = {**MODERN, "io.modelcontextprotocol/clientInfo": client}
    legacy = json.loads(dialect.decode(Request(2, "tools/list", {}), conversation).answer)["result"]["tools"]
    modern = json.loads(dialect.decode(Request(3, "tools/list", {"_meta": meta}), FRESH).answer)["result"]["tools"]

    assert legacy == modern == (tools if has_schemas else TOOLS)


def test_a_cursor_for_the_tool_list_is_refused():
    for cursor, error_code in (("abc", "CURSOR_INVALID"), ("", "CURSOR_INVALID"), (5, "INVALID_PARAMS")):
        error = answer("tools/list", {"cursor": cursor})["error"]

        assert error["code"] == -32602
        assert error["data"]["error_code"] == error_code


def test_a_modern_result_has_type_server_info_and_cache_hints():
    for method in ("tools/list", "server/discover"):
        result = answer(method, {"_meta": MODERN})["result"]

        assert result["resultType"] == "complete"
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["version"] == "1.2.3"
        assert result["ttlMs"] >= 0
        assert result["cacheScope"] in ("public", "private")


def test_discovery_and_initialize_work_on_one_connection_in_either_order():
    discovered = decode("server/discover", {"_meta": MODERN})
    then = decode("initialize", {"protocolVersion": "2025-11-25", **CLIENT}, discovered.conversation)
    again = decode("server/discover", {"_meta": MODERN}, then.conversation)

    assert json.loads(discovered.answer)["result"]["supportedVersions"] == ["2026-07-28"]
    assert json.loads(then.answer)["result"]["protocolVersion"] == "2025-11-25"
    assert "result" in json.loads(again.answer)
    assert "result" in answer("ping", conversation=again.conversation)


@pytest.mark.parametrize("key", ["protocolVersion", "clientCapabilities"])
def test_a_modern_request_without_its_meta_is_refused(key):
    meta = {name: value for name, value in MODERN.items() if not name.endswith(key)}

    assert answer("server/discover", {"_meta": meta})["error"]["code"] == -32602
    assert answer("server/discover")["error"]["code"] == -32602
    assert answer("tools/list", {"_meta": meta}, Conversation(modern=True))["error"]["code"] == -32602


def test_an_unsupported_version_is_refused_with_the_supported_ones():
    meta = {**MODERN, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}
    error = answer("tools/list", {"_meta": meta})["error"]

    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2027-01-01"}


def test_ping_exists_only_in_revisions_with_a_handshake():
    assert answer("ping")["result"] == {}
    assert answer("ping", {"_meta": MODERN})["error"]["code"] == -32601


@pytest.mark.parametrize("method", ["nope", "read_file", "resources/list", "notifications/initialized", "tools/Call"])
def test_an_unknown_method_is_refused(method):
    assert answer(method)["error"]["code"] == -32601
    assert answer(method)["error"]["data"]["error_code"] == "METHOD_NOT_FOUND"
    assert answer(method, {"_meta": MODERN})["error"]["code"] == -32601


def test_a_success_has_structured_content_and_the_same_as_text():
    output = {"path": "a.txt", "content": 'line\n"quoted" \u2028 \N{GRINNING FACE} \\', "summary": "one line"}
    result = encode(Outcome("read_file", output=output, receipt=RECEIPT))["result"]

    assert result == {
        "content": [{"type": "text", "text": orjson.dumps(output).decode()}],
        "structuredContent": output,
        "isError": False,
        "_meta": {"kaiza/receipt": {"seq": 41, "entry_hash": "ab" * 32}},
    }


def test_the_summary_replaces_the_text_if_requested():
    result = encode(Outcome("echo", output={"a": 1, "summary": "one thing"}), ResultFormat(summary=True))["result"]

    assert result["content"] == [{"type": "text", "text": "one thing"}]
    assert result["structuredContent"] == {"a": 1, "summary": "one thing"}


def test_a_failure_has_its_envelope_as_text_and_no_structured_content():
    failed = Outcome("read_file", envelope=ENVELOPE, code=error_codes.lookup("FILE_NOT_FOUND"), receipt=RECEIPT)
    result = encode(failed)["result"]

    assert result["isError"] is True
    assert "structuredContent" not in result
    assert [json.loads(block["text"]) for block in result["content"]] == [ENVELOPE]
    assert result["content"][0]["text"] == orjson.dumps(ENVELOPE).decode()
    assert result["_meta"] == {"kaiza/receipt": RECEIPT.as_json()}


def test_evidence_is_a_second_text_block():
    evidence = {"expected": ["a"], "found": ["b"]}
    failed = Outcome("edit_file", envelope=ENVELOPE, code=error_codes.lookup("PATCH_APPLY_FAILED"), evidence=evidence)

    assert [json.loads(block["text"]) for block in encode(failed)["result"]["content"]] == [ENVELOPE, evidence]


@pytest.mark.parametrize("error_code", ["TOOL_NOT_FOUND", "INVALID_PARAMS"])
def test_an_unknown_tool_is_a_json_rpc_error_with_the_envelope_as_data(error_code):
    envelope = {**ENVELOPE, "error_code": error_code}
    error = encode(Outcome("zip", envelope=envelope, code=error_codes.lookup(error_code)))["error"]

    assert error["code"] == -32602
    assert error["data"] == envelope


@pytest.mark.parametrize("outcome", [Outcome("a", output={}), Outcome("a", envelope=ENVELOPE)])
def test_a_modern_tool_result_has_type_server_info_and_receipt(outcome):
    with_receipt = Outcome(outcome.tool_name, outcome.output, outcome.envelope, receipt=RECEIPT)
    result = encode(with_receipt, ResultFormat(modern_meta=DIALECT.modern_meta))["result"]

    assert result["resultType"] == "complete"
    assert result["_meta"].keys() == {"io.modelcontextprotocol/serverInfo", "kaiza/receipt"}


def test_the_tool_list_is_built_once_and_on_first_use():
    calls = []
    dialect = McpDialect(ServerDescription("1", "", lambda: calls.append(1) or TOOLS))
    for method, params in (("ping", {}), ("tools/list", {}), ("tools/list", {"_meta": MODERN}), ("tools/list", {})):
        dialect.decode(Request(1, method, params), FRESH)

    assert calls == [1]


TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    ("sent", "taken"),
    [
        (TRACE, TRACE),
        (TRACE.replace("00-", "01-", 1), TRACE.replace("00-", "01-", 1)),
        (TRACE.replace("00-", "ff-", 1), None),
        (TRACE.upper(), None),
        (TRACE + "-", None),
        (TRACE + "\n", None),
        (TRACE[:-1], None),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        (f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01", None),
        (TRACE.replace("4", "٤", 1), None),
        ("x" * 100_000, None),
        (7, None),
        ([TRACE], None),
        (None, None),
    ],
)
def test_only_a_valid_traceparent_is_passed_on(sent, taken):
    params = {"name": "echo", "_meta": {"traceparent": sent}}

    assert decode("tools/call", params).call.traceparent == taken
