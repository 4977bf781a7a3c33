"""Compares the MCP dialect's answers with those of the MCP SDK's own server. Intended differences are listed here."""

import json
from functools import cache

import anyio
import mcp_types
import pytest
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import TypeAdapter

import kaiza
from kaiza.domain import error_codes
from kaiza.domain.call import Outcome, Receipt
from kaiza.domain.server_instructions import INSTRUCTIONS
from kaiza.domain.tool_card import ToolOffer
from kaiza.store.config.schema_registry import SchemaRegistry, list_items
from kaiza.wire import message
from kaiza.wire.dialect import Conversation, ServerDescription
from kaiza.wire.dialects.mcp import McpDialect
from kaiza.wire.protocol_versions import HANDSHAKE_VERSIONS
from kaiza.wire.shape import find_call_fault

OTHER_DIALECTS = ("id", "category", "safetyLevel", "tier")
"""Members of a tool that the SDK does not know."""
TOOLS = [
    {name: value for name, value in tool.items() if name not in OTHER_DIALECTS}
    for tool in list_items(SchemaRegistry(), ToolOffer())
]
DIALECT = McpDialect(ServerDescription(kaiza.__version__, INSTRUCTIONS, lambda: TOOLS))
RECEIPT = Receipt(7, "0" * 64)
ENVELOPE = {"error_code": "FILE_NOT_FOUND", "human_message": "No such file. List the directory.", "cause": None}
OUTPUT = {"path": "a", "content": "b\n", "deep": {"nothing": None, "list": [1, {"c": 2.5}]}}
OUTCOMES = {
    "good": Outcome("good", output=OUTPUT, receipt=RECEIPT),
    "bad": Outcome("bad", envelope=ENVELOPE, code=error_codes.lookup("FILE_NOT_FOUND"), receipt=RECEIPT),
}
UNKNOWN = {**ENVELOPE, "error_code": "TOOL_NOT_FOUND"}
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def _list_tools(_context, _params):
    return mcp_types.ListToolsResult(tools=[mcp_types.Tool.model_validate(tool) for tool in TOOLS])


async def _call_tool(_context, params):
    outcome = OUTCOMES.get(params.name)
    if outcome is None:
        raise MCPError(-32602, "Unknown tool", UNKNOWN)
    document = outcome.output or outcome.envelope
    text = mcp_types.TextContent(type="text", text=json.dumps(document, separators=(",", ":")))
    return mcp_types.CallToolResult(
        content=[text],
        structured_content=outcome.output,
        is_error=outcome.output is None,
        _meta={"kaiza/receipt": RECEIPT.as_json()},
    )


def sdk_server():
    return Server(
        "kaiza",
        title="Kaiza",
        version=kaiza.__version__,
        instructions=INSTRUCTIONS,
        cache_hints={
            "tools/list": CacheHint(ttl_ms=3_600_000, scope="private"),
            "server/discover": CacheHint(ttl_ms=3_600_000, scope="public"),
        },
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
    )


async def _exchange(messages):
    server = sdk_server()
    to_server, incoming = anyio.create_memory_object_stream(64)
    outgoing, from_server = anyio.create_memory_object_stream(64)
    answers = []
    async with anyio.create_task_group() as group, to_server, from_server:
        group.start_soon(server.run, incoming, outgoing, server.create_initialization_options())
        for each in messages:
            await to_server.send(SessionMessage(TypeAdapter(mcp_types.JSONRPCMessage).validate_python(each)))
            answers.append((await from_server.receive()).message.model_dump(by_alias=True, exclude_none=True))
        group.cancel_scope.cancel()
    return answers


@cache
def _answers_of_sdk(lines):
    return anyio.run(_exchange, [json.loads(line) for line in lines])


def answers_of_sdk(*requests):
    return _answers_of_sdk(tuple(json.dumps(request) for request in requests))


def answers_of_kaiza(*requests):
    answers, conversation = [], Conversation()
    for each in requests:
        parsed = message.parse(json.dumps(each).encode())
        conversation, answer, call = DIALECT.decode(parsed, conversation)
        if call is not None:
            outcome = OUTCOMES.get(
                call.tool_name, Outcome("?", envelope=UNKNOWN, code=error_codes.lookup("TOOL_NOT_FOUND"))
            )
            fault = find_call_fault(parsed)
            answer = message.rejection(fault) if fault else DIALECT.encode(parsed.id, outcome, call.reply_form)
        answers.append(json.loads(answer))
    return answers


def request(number, method, /, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def modern(number, method, /, **params):
    return request(number, method, _meta=MODERN, **params)


def initialize(version):
    client = {"name": "c", "version": "1"}
    return request(0, "initialize", protocolVersion=version, capabilities={}, clientInfo=client)


def without_data(answers):
    """Difference 1: the SDK's errors say "" or the method in `data`; ours name the registry's code and a reason."""
    for answer in answers:
        answer.get("error", {}).pop("data", None)
    return answers


@pytest.mark.parametrize("version", [*HANDSHAKE_VERSIONS, "2026-07-28", "odd"])
def test_answers_with_a_handshake_equal_the_sdk_server(version):
    requests = [
        initialize(version),
        request(1, "ping"),
        request(2, "tools/list"),
        {"jsonrpc": "2.0", "id": "three", "method": "tools/list"},
        request(4, "tools/call", name="good", arguments={}),
        request(5, "tools/call", name="bad"),
        request(6, "tools/list", _meta=None, cursor=None),
        request(7, "tools/list", _meta={"progressToken": 1}),
        initialize(version),
    ]

    assert answers_of_kaiza(*requests) == answers_of_sdk(*requests)


def test_answers_without_a_handshake_equal_the_sdk_server():
    requests = [
        modern(0, "server/discover"),
        modern(1, "tools/list"),
        modern("two", "tools/call", name="good", arguments={}),
        modern(3, "tools/call", name="bad", arguments={"a": 1}),
        modern(4, "tools/call", name="missing", arguments={}),
        request(5, "tools/list", _meta={**MODERN, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}),
    ]

    assert answers_of_kaiza(*requests) == answers_of_sdk(*requests)


def test_the_answer_to_an_unknown_tool_equals_the_sdk_server():
    requests = [initialize("2025-11-25"), request(1, "tools/call", name="missing", arguments={})]

    assert answers_of_kaiza(*requests) == answers_of_sdk(*requests)


def test_every_tool_is_listed_with_its_exact_schemas():
    listed = answers_of_kaiza(request(1, "tools/list"))[0]["result"]["tools"]

    assert listed == TOOLS
    assert [list(tool["inputSchema"]) for tool in listed] == [list(tool["inputSchema"]) for tool in TOOLS]


@pytest.mark.parametrize(
    "faulty",
    [
        request(1, "nope"),
        request(1, "resources/list"),
        request(1, "prompts/get", name="a"),
        request(1, "logging/setLevel", level="debug"),
        request(1, "tools/call"),
        request(1, "tools/call", name=5),
        request(1, "tools/call", arguments={}),
        request(1, "tools/list", cursor=5),
        request(1, "tools/list", _meta=5),
        request(1, "initialize"),
        request(1, "initialize", protocolVersion="2025-11-25"),
        request(1, "initialize", protocolVersion=5, capabilities={}, clientInfo={"name": "c", "version": "1"}),
        request(1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "c"}),
    ],
)
def test_refusals_equal_the_sdk_server_in_code_and_message(faulty):
    both = [initialize("2025-11-25"), faulty]

    assert without_data(answers_of_kaiza(*both)) == without_data(answers_of_sdk(*both))


@pytest.mark.parametrize(
    "faulty",
    [
        modern(1, "nope"),
        modern(1, "ping"),
        modern(1, "tools/call"),
        modern(1, "tools/call", name=5),
        modern(1, "tools/list", cursor=5),
        request(1, "tools/list"),
        request(1, "tools/list", _meta={"io.modelcontextprotocol/protocolVersion": "2026-07-28"}),
        request(1, "tools/list", _meta={**MODERN, "io.modelcontextprotocol/protocolVersion": 5}),
        request(1, "tools/list", _meta={**MODERN, "io.modelcontextprotocol/clientCapabilities": 7}),
        request(1, "tools/list", _meta={**MODERN, "io.modelcontextprotocol/clientInfo": 7}),
    ],
)
def test_refusals_without_a_handshake_equal_the_sdk_server_in_code(faulty):
    """Difference 2: three of these say in the SDK's `message` which key is missing; ours say it in `data.reason`."""
    both = [modern(0, "server/discover"), faulty]
    ours, theirs = answers_of_kaiza(*both)[1], answers_of_sdk(*both)[1]

    assert (ours["id"], ours["error"]["code"]) == (theirs["id"], theirs["error"]["code"])


DIFFERENT_ON_PURPOSE = {
    "initialize after a modern request: served, because a host may probe with one and speak the other": (
        [modern(0, "server/discover"), initialize("2025-11-25")],
        "result",
        -32022,
    ),
    "a modern request after initialize: served, for the same reason": (
        [initialize("2025-11-25"), modern(1, "tools/list")],
        "result",
        -32600,
    ),
    "a request before initialize: served, because nothing depends on the handshake": (
        [request(1, "tools/list")],
        "result",
        -32602,
    ),
    "server/discover without its meta: refused for what is missing, because the method exists": (
        [initialize("2025-11-25"), request(1, "server/discover")],
        -32602,
        -32601,
    ),
    "arguments that are not an object: decoded as a call, so that it is recorded; the boundary refuses it": (
        [initialize("2025-11-25"), request(1, "tools/call", name="good", arguments=[])],
        "result",
        -32602,
    ),
    "an invented cursor: refused, because the list has one page": (
        [initialize("2025-11-25"), request(1, "tools/list", cursor="abc")],
        -32602,
        "result",
    ),
}


@pytest.mark.parametrize("why", DIFFERENT_ON_PURPOSE)
def test_intended_differences_from_the_sdk_server(why):
    requests, ours, theirs = DIFFERENT_ON_PURPOSE[why]

    assert _kind(answers_of_kaiza(*requests)[-1]) == ours
    assert _kind(answers_of_sdk(*requests)[-1]) == theirs


def _kind(answer):
    return answer["error"]["code"] if "error" in answer else "result"
