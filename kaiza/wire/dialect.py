"""Interface of a dialect: a request decoded into a tool call, and what the call came to encoded as its answer.

Values here are named tuples, because they are made before the first answer and dataclasses cost 10 ms to import.
"""

from typing import TYPE_CHECKING, NamedTuple, Protocol

from kaiza.wire.message import Request, RequestId

if TYPE_CHECKING:
    from kaiza.domain.call import Outcome


class Conversation(NamedTuple):
    """State of one connection: what it has been used for so far."""

    initialized: bool = False
    modern: bool = False
    client: str | None = None


class ToolCall(NamedTuple):
    """A tool call as it was decoded, before anything about it is checked."""

    tool_name: str
    arguments: object
    client: str | None
    conversational: bool
    """Whether the client opened this connection with a handshake, so that a session may be implied."""
    reply_form: object = None
    """How the dialect words the answer; opaque to the transport, which hands it back to `encode`."""


class Decoded(NamedTuple):
    """A request decoded: an answer ready to be sent, or a tool call to be made; and the conversation after it."""

    conversation: Conversation
    answer: bytes | None = None
    call: ToolCall | None = None


class Dialect(Protocol):
    """One way of calling tools. The shape of the request chooses it, never the transport."""

    def can_decode(self, request: Request) -> bool:
        """Whether the request is in this dialect."""
        ...

    def decode(self, request: Request, so_far: Conversation) -> Decoded:
        """Answer the request, or return the tool call that it asks for."""
        ...

    def encode(self, request_id: RequestId, outcome: "Outcome", reply_form: object) -> bytes:
        """The line that answers a tool call."""
        ...
