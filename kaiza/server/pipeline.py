"""Protocol logic shared by all transports: an incoming line becomes an answer, a tool call or a cancellation.

Not thread-safe: lines are processed one at a time, in the order in which they arrived.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kaiza.wire import message
from kaiza.wire.dialect import Conversation, Dialect, ToolCall
from kaiza.wire.message import InvalidMessage, Notification, Request, RequestId

if TYPE_CHECKING:
    from kaiza.domain.call import CallRequest, Outcome


class Incoming(NamedTuple):
    """A tool call with its request id and the dialect that encodes its answer."""

    request_id: RequestId
    call: ToolCall
    dialect: Dialect

    def encode(self, outcome: "Outcome") -> bytes:
        """Encode the answer as a line."""
        fault = self.call.fault
        if fault is not None and outcome.code is not None and outcome.code.name == fault.error_code:
            return message.rejection(fault)
        return self.dialect.encode(self.request_id, outcome, self.call.reply_form)


class TransportAction(NamedTuple):
    """What to do for a line: send an answer, run a call, suppress the answer of another call, or nothing."""

    answer: bytes | None = None
    call: Incoming | None = None
    cancelled: object = None


class Pipeline:
    """Dialects in order of preference, and the state of the conversation on one connection."""

    def __init__(self, dialects: Sequence[Dialect]) -> None:
        self._dialects = dialects
        self._conversation = Conversation()

    def parse_line(self, line: bytes | None) -> InvalidMessage | Notification | Request:
        """Parse a line. Without a line, return the error for one that was too long."""
        return message.line_too_long() if line is None else message.parse(line)

    def next_action(self, parsed: InvalidMessage | Notification | Request) -> TransportAction:
        """Decide what to do for a parsed line."""
        if isinstance(parsed, InvalidMessage):
            return TransportAction(answer=message.rejection(parsed))
        if isinstance(parsed, Notification):
            cancelled = parsed.params.get("requestId") if parsed.method == "notifications/cancelled" else None
            return TransportAction(cancelled=cancelled)
        dialect = next(dialect for dialect in self._dialects if dialect.can_decode(parsed))
        self._conversation, answer, call = dialect.decode(parsed, self._conversation)
        return TransportAction(answer, None if call is None else Incoming(parsed.id, call, dialect))


class AppProtocol(Protocol):
    """The application as the transports use it."""

    def stamp(self, request: "CallRequest", /) -> Any:
        """Create the call: request id, timestamp and `deadline`, in seconds of `time.monotonic`."""
        ...

    def answer(self, call: Any, /) -> "Outcome | None":
        """Run the call and return its outcome; None if `expire` answered it first."""
        ...

    def expire(self, call: Any, cap: str = "timeout", /) -> "Outcome | None":
        """Answer a call whose time is up; None if it is already answered, or its change already under way."""
        ...

    def close(self) -> None:
        """Sync the log and close all files."""
        ...


def to_call_request(call: ToolCall) -> "CallRequest":
    """Convert a decoded tool call to the application's request."""
    from kaiza.domain.call import CallFault, CallRequest  # noqa: PLC0415  not before the first answer: start-up time

    fault = None if call.fault is None else CallFault(call.fault.error_code, call.fault.reason)
    return CallRequest(call.tool_name, call.arguments, call.client, call.conversational, fault)
