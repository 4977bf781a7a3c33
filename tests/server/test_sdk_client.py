"""The client of the Python SDK, in each of its connection modes, against the real server in a process of its own."""

import json
import os
import sys

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from scenes import records


def server_parameters(workspace):
    return StdioServerParameters(
        command=sys.executable, args=["-m", "kaiza", "serve", "--workspace", str(workspace)], env=_environment()
    )


def _environment():
    return {name: os.environ[name] for name in ("PATH", "HOME", "XDG_STATE_HOME") if name in os.environ}


async def _run_session(workspace, mode):
    async with Client(server_parameters(workspace), mode=mode) as client:
        listed = await client.list_tools()
        begun = await client.call_tool("begin_session", {"role": "WINDSURF"})
        session = {"session_id": begun.structured_content["session_id"]}
        read = await client.call_tool("read_file", {"path": "a.txt", **session})
        missing = await client.call_tool("read_file", {"path": "b.txt", **session})
        ended = await client.call_tool("end_session", session)
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("zip", {})
        return client.protocol_version, listed, read, missing, ended, unknown.value


@pytest.mark.rows("S4-67")
@pytest.mark.parametrize(
    ("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")]
)
def test_the_sdk_client_lists_tools_begins_a_session_and_reads_a_file(workspace, mode, version):
    (workspace / "a.txt").write_text("hello\n")
    protocol, listed, read, missing, ended, unknown = anyio.run(_run_session, workspace, mode)

    assert protocol == version
    assert "begin_session" in {tool.name for tool in listed.tools}
    assert read.structured_content["content"] == "hello\n"
    assert json.loads(read.content[0].text) == read.structured_content
    assert missing.is_error
    assert json.loads(missing.content[0].text)["error_code"] == "FILE_NOT_FOUND"
    assert missing.structured_content is None
    assert not ended.is_error
    assert unknown.error.code == -32602
    assert unknown.error.data["error_code"] == "TOOL_NOT_FOUND"
    recorded = [
        (record["tool_name"], record["error_code"]) for record in records(workspace) if record["kind"] == "call"
    ]
    assert recorded == [
        ("begin_session", None),
        ("read_file", None),
        ("read_file", "FILE_NOT_FOUND"),
        ("end_session", None),
        ("zip", "TOOL_NOT_FOUND"),
    ]


def test_a_receipt_identifies_the_record_of_its_call(workspace):
    async def begin_session():
        async with Client(server_parameters(workspace)) as client:
            begun = await client.call_tool("begin_session", {"role": "ANTIGRAVITY"})
            return begun.meta["kaiza/receipt"]

    receipt = anyio.run(begin_session)
    record = records(workspace)[0]

    assert receipt == {"seq": record["seq"], "entry_hash": record["entry_hash"]}
