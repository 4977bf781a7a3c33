"""Interface of a dialect: decodes requests into tool calls, and encodes their outcomes into answers.

Dialects do no input or output and call no tools.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kaiza.wire.message import InvalidMessage, Request, RequestId

if TYPE_CHECKING:
    from kaiza.domain.call import Outcome


# Named tuples, not dataclasses: these are needed before the first answer, and importing `dataclasses` costs 8 ms.


class ServerDescription(NamedTuple):
    """Server name, version, instructions and tools, as clients see them before the first call."""

    version: str
    instructions: str
    tools: Callable[[], Sequence[Mapping[str, Any]]]
    """Returns the items of MCP's tools/list, in order. Called once, on the first tools/list."""
    catalog: "Callable[[], ToolCatalog] | None" = None
    """Returns the tools as the editor dialect shows them. Called once, on the first request that needs them."""
    name: str = "kaiza"
    title: str = "Kaiza"


class ToolCatalog(Protocol):
    """Tools of the server as the editor dialect shows them."""

    def list_tools(self, category: str | None, tier: str | None) -> Sequence[Mapping[str, Any]]:
        """Items of tools/list with this category and tier, sorted by id."""
        ...

    def describe_tool(self, tool: str) -> Mapping[str, Any] | None:
        """The tool with this name or alias, with its inputs and outputs; None if there is none."""
        ...

    def describe_server(self) -> Mapping[str, Any]:
        """Result of server/info."""
        ...


class Conversation(NamedTuple):
    """State of one connection."""

    initialized: bool = False
    modern: bool = False
    """Whether it has had a request without a handshake."""
    client: str | None = None


class ToolCall(NamedTuple):
    """A decoded tool call. Its tool name and arguments are not checked yet."""

    tool_name: str
    arguments: object
    client: str | None
    conversational: bool
    """Whether the connection began with a handshake, so that a call without `session_id` may use the open session."""
    reply_form: object = None
    """Passed to `encode` with the outcome; opaque to the transport."""
    fault: InvalidMessage | None = None
    """Why no tool can be looked up. Such a call is recorded, and answered with this."""
    progress_token: str | int | None = None
    """Token under which the client wants progress reports."""
    traceparent: str | None = None
    """The trace that the call is part of, in the form of W3C Trace Context."""


class Decoded(NamedTuple):
    """Result of decoding a request: an answer to send or a tool call to make, and the new conversation state."""

    conversation: Conversation
    answer: bytes | None = None
    call: ToolCall | None = None


class Dialect(Protocol):
    """One protocol for calling tools. It is chosen by the shape of the request, not by the transport."""

    def decode(self, request: Request, conversation: Conversation) -> Decoded:
        """Answer the request, or return the tool call that it requests."""
        ...

    def encode(self, request_id: RequestId, outcome: "Outcome", reply_form: object) -> bytes:
        """Line that answers a tool call."""
        ...
