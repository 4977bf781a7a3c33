"""Synchronous MCP client for the demo: the SDK's client, connected to a server process over stdio."""

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

# Clients start servers with a minimal environment; PYTHONPATH and VIRTUAL_ENV keep an uninstalled checkout running.
_PASSED_ENVIRONMENT = ("PATH", "HOME", "XDG_STATE_HOME", "PYTHONPATH", "VIRTUAL_ENV")


class CallResult(NamedTuple):
    """Output of a tool call, or the code and envelope of its failure."""

    error_code: str | None
    body: Mapping[str, Any]


class McpClient:
    """A connected client; its methods block until the answer is there."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self._client = client

    def call_tool(self, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        """Call a tool and wait for its result."""
        try:
            result = self._portal.call(self._client.call_tool, tool, dict(arguments))
        except MCPError as error:
            data = error.error.data or {}
            return CallResult(data.get("error_code", str(error.error.code)), data)
        if result.is_error:
            envelope = json.loads(getattr(result.content[0], "text", "{}"))
            return CallResult(envelope["error_code"], envelope)
        return CallResult(None, result.structured_content or {})

    def list_tools(self) -> list[str]:
        """Names of the tools that the server offers."""
        return [tool.name for tool in self._portal.call(self._client.list_tools).tools]


@contextmanager
def connect(workspace: str, *options: str) -> Iterator[McpClient]:
    """Start a server and connect a client to it; both end with the context."""
    environment = {name: os.environ[name] for name in _PASSED_ENVIRONMENT if name in os.environ}
    command = ["-m", "kaiza", "serve", "--workspace", workspace, *options]
    server = StdioServerParameters(command=sys.executable, args=command, env=environment)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server)) as client:
        yield McpClient(portal, client)
