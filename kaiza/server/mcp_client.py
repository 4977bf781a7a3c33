"""An agent's end of the wire: the MCP SDK's own client, driving the real server over stdio, call by call."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

_PASSED_ENVIRONMENT = ("PATH", "HOME", "XDG_STATE_HOME", "PYTHONPATH", "VIRTUAL_ENV")


class CallResult(NamedTuple):
    """What a call came to: an output, or the code and the envelope of a refusal."""

    error_code: str | None
    body: Mapping[str, Any]


class McpClient:
    """A connected client."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self._client = client

    def call_tool(self, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        """Call a tool and wait for what it comes to."""
        try:
            result = self._portal.call(self._client.call_tool, tool, dict(arguments))
        except MCPError as refused:
            data = refused.error.data or {}
            return CallResult(data.get("error_code", str(refused.error.code)), data)
        if result.is_error:
            envelope = json.loads(getattr(result.content[0], "text", "{}"))
            return CallResult(envelope["error_code"], envelope)
        return CallResult(None, result.structured_content or {})

    def list_tools(self) -> list[str]:
        """The names of the tools that are offered."""
        return [tool.name for tool in self._portal.call(self._client.list_tools).tools]


@contextmanager
def connect(workspace: str, *options: str) -> Iterator[McpClient]:
    """A client of a server of its own, started as a client would start it."""
    environment = {name: os.environ[name] for name in _PASSED_ENVIRONMENT if name in os.environ}
    command = ["-m", "kaiza", "serve", "--workspace", workspace, *options]
    server = StdioServerParameters(command=sys.executable, args=command, env=environment)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server)) as client:
        yield McpClient(portal, client)
