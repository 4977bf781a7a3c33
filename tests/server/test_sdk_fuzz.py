"""Large and odd values through the client of the Python SDK, and as raw lines: every call is answered and recorded."""

import json
import os
import sys
from contextlib import asynccontextmanager
from itertools import cycle

import anyio
import pytest
from doors import call
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from odd_values import LARGE, VALUES, raw_calls
from scenes import records

LONG = bool(os.environ.get("KAIZA_LONG"))
SECONDS = 30
"""Within which each call must be answered, on a loaded machine too."""

ARGUMENTS = [
    ("read_file", "path"),
    ("read_file", "start_line"),
    ("search_text", "pattern"),
    ("list_directory", "pageSize"),
    ("write_file", "content"),
    ("write_file", "plan_hash"),
    ("apply_patch", "phase_id"),
    ("undo_changes", "request_ids"),
    ("context_resolve", "budget"),
    ("context_resolve", "query"),
    ("session_status", "session_id"),
    ("begin_session", "role"),
    ("nope", "x"),
]
NAMES = ["", "\0", "read_file ", "x" * 5000, "é", "read.file", "__proto__"]


def odd_calls():
    """Each value as an argument of some tool; in the long version, of every one."""
    if LONG:
        calls = [(tool, {name: value}) for value in VALUES for tool, name in ARGUMENTS]
    else:
        calls = [(tool, {name: value}) for value, (tool, name) in zip(VALUES, cycle(ARGUMENTS), strict=False)]
    large = [("write_file", {"path": "a", "content": value}) for value in LARGE]
    return [*calls, *large, *((name, {}) for name in NAMES)]


@asynccontextmanager
async def connected(transport, workspace, url, mode):
    if transport == "stdio":
        environment = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_STATE_HOME") if name in os.environ}
        arguments = ["-m", "kaiza", "serve", "--workspace", str(workspace)]
        target = StdioServerParameters(command=sys.executable, args=arguments, env=environment)
    else:
        target = streamable_http_client(f"{url}/mcp")
    async with Client(target, mode=mode) as client:
        yield client


async def make_calls(transport, workspace, url, mode):
    """Make each call; how many were answered by the server."""
    answered = 0
    async with connected(transport, workspace, url, mode) as client:
        for tool, arguments in odd_calls():
            with anyio.fail_after(SECONDS):
                try:
                    result = await client.call_tool(tool, arguments)
                    assert result.content
                except MCPError as error:
                    codes = error.error.data
                    # The client would make up an error without our codes.
                    answered -= codes is None or "error_code" not in codes
            answered += 1
        with anyio.fail_after(SECONDS):
            assert (await client.list_tools()).tools
    return answered


@pytest.mark.long
@pytest.mark.rows("S3-30", "S4-17")
@pytest.mark.parametrize(("transport", "mode"), [("stdio", "legacy"), ("http", "2026-07-28"), ("http", "legacy")])
def test_the_sdk_client_gets_an_answer_to_every_call_and_each_is_recorded(workspace, request, transport, mode):
    url = request.getfixturevalue("served_http").url if transport == "http" else None
    answered = anyio.run(make_calls, transport, workspace, url, mode)

    assert answered == len(odd_calls())
    assert len([record for record in records(workspace) if record["kind"] == "call"]) == answered


@pytest.mark.rows("S3-28", "S3-29", "S3-30", "S4-4", "S4-17")
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_raw_lines_that_no_sdk_sends_are_answered_under_their_ids_and_recorded(
    workspace, request, open_door, transport
):
    def over_http(line):
        return request.getfixturevalue("served_http").post("/mcp", line).body

    def over_stdio(line, door):
        door.say(line)
        return door.hear_line()

    if transport == "stdio":
        door = open_door([sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace)])
        send = lambda line: over_stdio(line, door)  # noqa: E731
    else:
        send = over_http
    begun = json.loads(send(json.dumps(call("b", "begin_session", role="WINDSURF")).encode()))
    lines = list(raw_calls(begun["result"]["structuredContent"]["session_id"]))
    for line, request_id in lines:
        answer = send(line.encode("latin-1"))

        assert answer.startswith(f'{{"jsonrpc":"2.0","id":{request_id},'.encode()), line[:200]
    assert len(records(workspace)) == len(lines) + 1
