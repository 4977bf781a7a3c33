"""Synchronous MCP client for `kaiza call` and the demo: the SDK's client, over stdio or HTTP."""

import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, NamedTuple, TextIO

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, Implementation
from pydantic import ValidationError

import kaiza
from kaiza.store.clients import server_command
from kaiza.wire.protocol_versions import MODERN_VERSIONS

ProgressReport = Callable[[int, int], None]
"""Called with the number of items done and their total; 0 if it is unknown."""

# Clients start servers with a minimal environment; PYTHONPATH and VIRTUAL_ENV keep an uninstalled checkout running.
_PASSED_ENVIRONMENT = ("PATH", "HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "PYTHONPATH", "VIRTUAL_ENV")
# The SDK logs what servers send, and Python would print it without escaping it for the terminal.
_NO_LOG = logging.NullHandler()
_CONNECT_SECONDS = 30
_ERROR_STATUS, _SERVER_ERROR_STATUS = 400, 500
_MAX_REFUSAL = 500
_MAX_ANSWER_BYTES = 16 << 20


class NoAnswerError(Exception):
    """The server gave no answer to the call. `refusal` is its reason, if it refused the connection itself."""

    def __init__(self, reason: str, refusal: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.refusal = refusal


_FAILURES = (NoAnswerError, httpx2.HTTPError, MCPError, OSError, RuntimeError, ValidationError)
"""Exceptions of a server that does not answer, or violates the protocol."""


class CallResult(NamedTuple):
    """Output of a tool call, or the code and envelope of its failure."""

    error_code: str | None
    body: Mapping[str, Any]
    document: Mapping[str, Any] = {}
    """The result, or the error, as the server sent it."""


class McpClient:
    """A connected client; its methods block until the answer arrives."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self._client = client

    def call_tool(
        self, tool: str, arguments: Mapping[str, Any], report_progress: ProgressReport | None = None
    ) -> CallResult:
        """Call a tool and wait for its result."""
        try:
            result = self._portal.call(self._call_tool, tool, dict(arguments), report_progress)
        except MCPError as error:
            data = error.error.data
            if not isinstance(data, dict) or not isinstance(data.get("error_code"), str):
                raise  # not the refusal of a call
            return CallResult(data["error_code"], data, error.error.model_dump(mode="json", exclude_unset=True))
        document = result.model_dump(mode="json", by_alias=True, exclude_unset=True)
        if result.is_error:
            return _read_failure(document)
        body = result.structured_content
        return CallResult(None, body if isinstance(body, dict) else {}, document)

    def list_tools(self) -> list[str]:
        """Names of the tools that the server offers."""
        return [tool.name for tool in self._portal.call(self._client.list_tools).tools]

    async def _call_tool(
        self, tool: str, arguments: dict[str, Any], report_progress: ProgressReport | None
    ) -> CallToolResult:
        async def report(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001  the SDK's
            if report_progress is not None:
                report_progress(int(progress), int(total or 0))

        callback = None if report_progress is None else report
        return await self._client.call_tool(tool, arguments, progress_callback=callback)


@contextmanager
def connect(workspace: str, *options: str, errors: TextIO = sys.stderr) -> Iterator[McpClient]:
    """Start a server and connect a client to it; both end with the context. NoAnswerError if it does not answer."""
    environment = {name: os.environ[name] for name in _PASSED_ENVIRONMENT if name in os.environ}
    command, *args = server_command.kaiza_command()
    arguments = [*args, "serve", "--workspace", workspace, *options]
    server = StdioServerParameters(command=command, args=arguments, env=environment)
    with _as_no_answer(), _connect(stdio_client(server, errors)) as client:
        yield client


@contextmanager
def connect_url(url: str, token: str | None, *, use_proxy: bool) -> Iterator[McpClient]:
    """Connect a client to a server over HTTP. NoAnswerError if it does not answer."""
    # Uncompressed, so that the size of what is received is the size of what is kept.
    headers = {"Accept-Encoding": "identity"} | ({} if token is None else {"Authorization": f"Bearer {token}"})
    refusals: list[tuple[int, str]] = []

    async def check_response(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise NoAnswerError("The answer is compressed, although the request forbids it")
        response.stream = _BoundedStream(response.stream)
        if response.status_code >= _ERROR_STATUS:
            await response.aread()
            refusals.append((response.status_code, response.text[:_MAX_REFUSAL]))

    # No time limit on reading: the server ends calls that take too long.
    http = httpx2.AsyncClient(
        headers=headers,
        timeout=httpx2.Timeout(_CONNECT_SECONDS, read=None),
        trust_env=use_proxy,
        event_hooks={"response": [check_response]},
    )

    @asynccontextmanager
    async def open_transport() -> AsyncIterator[Any]:
        async with http, streamable_http_client(url, http_client=http) as streams:
            yield streams

    with _as_no_answer(refusals), _connect(open_transport()) as client:
        yield client


class _BoundedStream(httpx2.AsyncByteStream):
    """Body of a response. NoAnswerError once it is longer than any answer of Kaiza."""

    def __init__(self, stream: object) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101  as an AsyncClient has it
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Pieces of the body."""
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > _MAX_ANSWER_BYTES:
                raise NoAnswerError(f"The answer is longer than {_MAX_ANSWER_BYTES >> 20} MiB")
            yield piece

    async def aclose(self) -> None:
        """Close the response."""
        await self._stream.aclose()


@contextmanager
def _connect(transport: AbstractAsyncContextManager[Any]) -> Iterator[McpClient]:
    logging.getLogger().addHandler(_NO_LOG)
    info = Implementation(name="kaiza", version=kaiza.__version__)
    client = Client(transport, mode=MODERN_VERSIONS[-1], client_info=info)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        yield McpClient(portal, client)


@contextmanager
def _as_no_answer(refusals: list[tuple[int, str]] | None = None) -> Iterator[None]:
    """Turn the SDK's errors, which come in groups, into a NoAnswerError, and an interrupt into one outside a group."""
    try:
        yield
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt):
            raise KeyboardInterrupt from None
        failures, others = group.split(_FAILURES)
        if failures is None or others is not None:
            raise
        raise _no_answer(_first_error(failures), refusals) from group
    except _FAILURES as error:
        raise _no_answer(error, refusals) from error


def _first_error(group: BaseExceptionGroup) -> BaseException:
    first = group.exceptions[0]
    return _first_error(first) if isinstance(first, BaseExceptionGroup) else first


def _no_answer(failure: BaseException, refusals: list[tuple[int, str]] | None) -> NoAnswerError:
    status, refusal = refusals[-1] if refusals else (_SERVER_ERROR_STATUS, "")
    reason = str(failure).partition("\n")[0]  # of a ValidationError the first of very many lines
    return NoAnswerError(reason, refusal if status < _SERVER_ERROR_STATUS else None)


def _read_failure(document: Mapping[str, Any]) -> CallResult:
    """The failure of a call from its first text block: an envelope, or an `error` with code and message."""
    try:
        body = json.loads(document["content"][0]["text"])
        error = body["error_code"] if "error_code" in body else body["error"]["code"]
    except (LookupError, TypeError, ValueError):
        body, error = {}, "error"
    return CallResult(str(error), body, document)
