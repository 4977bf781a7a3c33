"""A line in, a step out: every transport asks its questions here, so that all of them refuse alike.

The pipeline is used by one thread at a time, in the order in which lines came in.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kaiza.wire import message
from kaiza.wire.dialect import Conversation, Dialect, ToolCall
from kaiza.wire.message import InvalidMessage, Notification, Request, RequestId

if TYPE_CHECKING:
    from kaiza.domain.call import Outcome


class Incoming(NamedTuple):
    """A tool call under the id of its request, in the dialect that its answer is to have."""

    request_id: RequestId
    call: ToolCall
    dialect: Dialect

    def encode(self, outcome: "Outcome") -> bytes:
        """The line that answers it."""
        return self.dialect.encode(self.request_id, outcome, self.call.reply_form)


class TransportAction(NamedTuple):
    """What a line asks the transport to do: send an answer, make a call, hush another, or nothing."""

    answer: bytes | None = None
    call: Incoming | None = None
    cancelled: object = None


class Pipeline:
    """The dialects, asked in order, and what the pipe has been used for so far."""

    def __init__(self, dialects: Sequence[Dialect]) -> None:
        self._dialects = dialects
        self._conversation = Conversation()

    def parse_line(self, line: bytes | None) -> InvalidMessage | Notification | Request:
        """What the line says; None is a line beyond the bound."""
        return message.line_too_long() if line is None else message.parse(line)

    def next_action(self, said: InvalidMessage | Notification | Request) -> TransportAction:
        """What is to be done about it."""
        if isinstance(said, InvalidMessage):
            return TransportAction(answer=message.rejection(said))
        if isinstance(said, Notification):
            cancelled = said.params.get("requestId") if said.method == "notifications/cancelled" else None
            return TransportAction(cancelled=cancelled)
        dialect = next(one for one in self._dialects if one.can_decode(said))
        self._conversation, answer, call = dialect.decode(said, self._conversation)
        return TransportAction(answer, None if call is None else Incoming(said.id, call, dialect))


if TYPE_CHECKING:
    from kaiza.domain.call import CallRequest, Outcome


class AppProtocol(Protocol):
    """The house behind the door."""

    def stamp(self, ask: "CallRequest", /) -> Any:
        """Give the ask its request id, its time and its `deadline`, in seconds of `time.monotonic`."""
        ...

    def answer(self, call: Any, /) -> "Outcome | None":
        """Carry the call out, whole; None where somebody else has answered it."""
        ...

    def expire(self, call: Any, cap: str = "timeout", /) -> "Outcome | None":
        """End the call for its time; None where it is answered, or past the point where it can be ended."""
        ...

    def close(self) -> None:
        """Make durable what is not."""
        ...


def to_call_request(call: ToolCall) -> "CallRequest":
    """A decoded tool call as the application takes it."""
    from kaiza.domain.call import CallRequest  # noqa: PLC0415  loaded with the application, not before the first answer

    return CallRequest(call.tool_name, call.arguments, call.client, call.conversational)
