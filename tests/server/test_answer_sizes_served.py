"""The size of an answer is the same over stdio and HTTP, in every dialect, with and without a handshake."""

import json

import pytest
from doors import call, request
from http_doors import modern
from scenes import write_adopted_settings

META = "io.modelcontextprotocol/clientInfo"
LIMIT, CONFIGURED = 47_900, 100_000
CODEX = {"name": "codex-mcp-client", "version": "0.169.0"}


def size(output):
    return len(json.dumps(output, ensure_ascii=False, separators=(",", ":")).encode())


@pytest.fixture
def root(workspace):
    (workspace / "long").write_text(('a "quoted" part of a long line, ' * 30 + "\n") * 2_000)
    write_adopted_settings(workspace, f"[answers]\nbytes = {CONFIGURED}\n")
    return workspace


@pytest.fixture(params=["stdio", "http"])
def ask(request, root):
    """Sends a message over either transport; returns its result."""
    door = request.getfixturevalue("served_http" if request.param == "http" else "served_stdio")
    if request.param == "stdio":
        return lambda message, _headers=None: door.ask(message)["result"]
    return lambda message, headers=None: door.post(
        "/rpc" if "tool" in message["params"] else "/mcp", message, **(headers or {})
    ).value["result"]


def ask_modern(ask, tool, arguments, client=None):
    message, headers = modern(1, "tools/call", name=tool, arguments=arguments)
    if client:
        message["params"]["_meta"][META] = client
    return ask(message, headers)


def test_a_client_without_a_handshake_may_name_itself_in_each_request(ask):
    session = {"session_id": ask_modern(ask, "begin_session", {"role": "WINDSURF"})["structuredContent"]["session_id"]}
    known = ask_modern(ask, "read_file", {"path": "long", **session}, CODEX)
    unknown = ask_modern(ask, "read_file", {"path": "long", **session})

    for result, limit in ((known, LIMIT), (unknown, CONFIGURED)):
        assert limit - 4_096 < size(result["structuredContent"]) <= limit
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        assert len(result["content"][0]["text"].encode()) <= limit


def test_every_dialect_gives_the_same_object_in_the_same_order(ask):
    begun = ask_modern(ask, "begin_session", {"role": "WINDSURF"})["structuredContent"]
    arguments = {"path": "long", "session_id": begun["session_id"]}
    mcp = ask_modern(ask, "read_file", arguments)["structuredContent"]
    editor = ask(request(2, "tools/call", tool="read_file", arguments=arguments))["output"]
    canonical = ask(request(3, "tools/call", tool="read_file", input=arguments))["output"]

    assert list(mcp.items()) == list(editor.items()) == list(canonical.items())
    assert (next(iter(mcp)), list(mcp)[-2:]) == ("summary", ["truncated", "next"])


def test_a_client_with_a_handshake_is_known_by_it_on_stdio(root, served_stdio):
    door = served_stdio
    door.ask(request(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=CODEX))
    door.ask(call(1, "begin_session", role="WINDSURF"))
    output = door.ask(call(2, "read_file", path="long"))["result"]["structuredContent"]

    assert LIMIT - 4_096 < size(output) <= LIMIT


def test_over_http_a_client_with_a_handshake_is_known_if_its_session_names_it(root, served_http):
    sizes = []
    for more in ({}, {"client": "codex-mcp-client 0.169.0"}):
        answer = served_http.post("/mcp", call(1, "begin_session", role="WINDSURF", **more)).value
        begun = answer["result"]["structuredContent"]
        read = served_http.post("/mcp", call(2, "read_file", path="long", session_id=begun["session_id"]))
        sizes.append(size(read.value["result"]["structuredContent"]))

    assert CONFIGURED - 4_096 < sizes[0] <= CONFIGURED
    assert LIMIT - 4_096 < sizes[1] <= LIMIT
