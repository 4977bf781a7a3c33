"""The client of the Python SDK over HTTP, in each of its connection modes, against the real server."""

import json

import anyio
import pytest
from agents import plan, sha
from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from scenes import records

CODES = [None, None, "PATH_TRAVERSAL_BLOCKED", "PLAN_NOT_FOUND", None, None]
"""Error codes of the calls that `_work` makes."""


async def _work(url, mode, plan_hash, before, token=None):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    http = create_mcp_http_client(headers)
    async with http, Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client:
        listed = await client.list_tools()
        begun = await client.call_tool("begin_session", {"role": "WINDSURF"})
        session = {"session_id": begun.structured_content["session_id"]}
        read = await client.call_tool("read_file", {"path": "a.txt", **session})
        outside = await client.call_tool("read_file", {"path": "../b.txt", **session})
        change = {"path": "a.txt", "content": "new\n", "expected_hash": before, **session}
        refused = await client.call_tool("write_file", {**change, "plan_hash": "0" * 64})
        written = await client.call_tool("write_file", {**change, "plan_hash": plan_hash})
        ended = await client.call_tool("end_session", session)
        return client.protocol_version, listed, [begun, read, outside, refused, written, ended]


def error_code(result):
    return json.loads(result.content[0].text)["error_code"] if result.is_error else None


@pytest.mark.rows("S4-67")
@pytest.mark.parametrize(
    ("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")]
)
def test_the_sdk_client_reads_is_refused_and_changes_a_file_under_a_plan(workspace, served, mode, version):
    (workspace / "a.txt").write_text("old\n")
    plan_hash = plan(workspace, scope='{modify: ["a.txt"]}')
    protocol, listed, results = anyio.run(_work, served.url, mode, plan_hash, sha(b"old\n"))

    assert protocol == version
    assert "write_file" in {tool.name for tool in listed.tools}
    assert results[1].structured_content["content"] == "old\n"
    assert [error_code(result) for result in results] == CODES
    assert (workspace / "a.txt").read_text() == "new\n"
    assert [record["error_code"] for record in records(workspace) if record["kind"] == "call"] == CODES
