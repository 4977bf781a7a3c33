"""The client of the Python SDK over each transport, in each of its connection modes, against the real server."""

import json
import os
import sys

import anyio
import pytest
from agents import plan, sha
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from scenes import records

CODES = [None, None, "FILE_NOT_FOUND", "PATH_TRAVERSAL_BLOCKED", "PLAN_NOT_FOUND", None, None, "TOOL_NOT_FOUND"]
"""Error codes of the calls that `work` makes."""


async def work(target, mode, plan_hash, before):
    """Make calls; the protocol version, the listed tools, the results, and the error of an unknown tool."""
    async with Client(target, mode=mode) as client:
        listed = await client.list_tools()
        begun = await client.call_tool("begin_session", {"role": "WINDSURF"})
        session = {"session_id": begun.structured_content["session_id"]}
        change = {"path": "a.txt", "content": "new\n", "expected_hash": before}
        results = [begun]
        for tool, arguments in (
            ("read_file", {"path": "a.txt"}),
            ("read_file", {"path": "b.txt"}),
            ("read_file", {"path": "../b.txt"}),
            ("write_file", {**change, "plan_hash": "0" * 64}),
            ("write_file", {**change, "plan_hash": plan_hash}),
            ("end_session", {}),
        ):
            results.append(await client.call_tool(tool, {**arguments, **session}))
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("zip", {})
        return client.protocol_version, listed, results, unknown.value.error


def error_code(result):
    return json.loads(result.content[0].text)["error_code"] if result.is_error else None


@pytest.fixture(params=["stdio", "http"])
def target(request, workspace):
    if request.param == "http":
        return streamable_http_client(f"{request.getfixturevalue('served_http').url}/mcp")
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_STATE_HOME") if name in os.environ}
    serve = ["-m", "kaiza", "serve", "--workspace", str(workspace)]
    return StdioServerParameters(command=sys.executable, args=serve, env=environment)


@pytest.mark.rows("S4-67")
@pytest.mark.parametrize(
    ("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")]
)
def test_the_sdk_client_reads_is_refused_and_changes_a_file_under_a_plan(workspace, target, mode, version):
    (workspace / "a.txt").write_text("old\n")
    plan_hash = plan(workspace, scope='{modify: ["a.txt"]}')
    protocol, listed, results, unknown = anyio.run(work, target, mode, plan_hash, sha(b"old\n"))
    written = [record for record in records(workspace) if record["kind"] == "call"]

    assert protocol == version
    assert {"begin_session", "write_file"} <= {tool.name for tool in listed.tools}
    assert results[1].structured_content["content"] == "old\n"
    assert json.loads(results[1].content[0].text) == results[1].structured_content
    assert [error_code(result) for result in results] == CODES[:-1]
    assert all(result.structured_content is None for result in results if result.is_error)
    assert (unknown.code, unknown.data["error_code"]) == (-32602, "TOOL_NOT_FOUND")
    assert (workspace / "a.txt").read_text() == "new\n"
    assert [record["error_code"] for record in written] == CODES
    assert results[0].meta["kaiza/receipt"] == {key: written[0][key] for key in ("seq", "entry_hash")}
