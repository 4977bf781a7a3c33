"""Protocol logic shared by all transports: an incoming line becomes an answer, a tool call or a cancellation.

Not thread-safe: lines are processed one at a time, in the order in which they arrived.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kaiza.wire import message
from kaiza.wire.dialect import Conversation, Dialect, ToolCall
from kaiza.wire.message import InvalidMessage, Notification, Request, RequestId
from kaiza.wire.outline import Outline
from kaiza.wire.shape import DialectName, find_call_fault, find_dialect

if TYPE_CHECKING:
    from kaiza.domain.call import CallRequest, Outcome, Principal

DialectTable = Mapping[DialectName, Callable[[], Dialect]]
"""Dialects by name; each is loaded when a request first needs it."""

_OTHER_ROUTE: Final = "This route accepts MCP requests only. Send requests of other dialects to /rpc."

ParsedLine = InvalidMessage | Notification | Request


class Incoming(NamedTuple):
    """A tool call with its request id and the dialect that encodes its answer."""

    request_id: RequestId
    call: ToolCall
    dialect: Dialect

    def encode(self, outcome: "Outcome") -> bytes:
        """Encode the answer as a line."""
        fault = self.call.fault
        is_refused = fault is not None and outcome.code is not None and outcome.code.name == fault.error_code
        # An exceeded limit is answered like one that a tool finds, so that a model gets to read it.
        if fault is not None and is_refused and fault.cause is None:
            return message.rejection(fault)
        return self.dialect.encode(self.request_id, outcome, self.call.reply_form)

    def encode_progress(self, done: int, total: int | None) -> bytes | None:
        """Line that reports progress; None if the client did not ask for it."""
        token = self.call.progress_token
        return None if token is None else message.progress(token, done, total)


class TransportAction(NamedTuple):
    """What to do for a line: send an answer, run a call, suppress the answer of another call, or nothing."""

    answer: bytes | None = None
    call: Incoming | None = None
    cancelled: object = None


class Exchange(NamedTuple):
    """A request and its answer, as a transport reports them to the run log."""

    message: InvalidMessage | Request
    size: int
    """Of the request, in bytes."""
    began: float
    """When it was received, in seconds of `time.monotonic`."""
    transport: str = "stdio"
    route: str | None = None
    """Path of the URL; None on stdio."""
    agent: str | None = None
    """Label of the principal."""
    line: bytes | Outline | None = None
    """The request's bytes, or the outline of too many; needed where it is refused."""
    answer: bytes = b""
    incoming: Incoming | None = None
    """The tool call."""
    outcome: "Outcome | None" = None


class Pipeline:
    """Dialects, and the state of the conversation on one connection."""

    def __init__(self, dialects: DialectTable, *, mcp_only: bool = False) -> None:
        self._dialects = dialects
        self._mcp_only = mcp_only
        self._conversation = Conversation()

    def parse_line(self, line: bytes | Outline) -> ParsedLine:
        """Parse a line, or refuse one that was too long, of which there is an outline."""
        return message.refuse_long_line(line) if isinstance(line, Outline) else message.parse(line)

    def next_action(self, parsed: ParsedLine) -> TransportAction:
        """Decide what to do for a parsed line."""
        if isinstance(parsed, InvalidMessage):
            return TransportAction(answer=message.rejection(parsed))
        if isinstance(parsed, Notification):
            cancelled = parsed.params.get("requestId") if parsed.method == "notifications/cancelled" else None
            return TransportAction(cancelled=cancelled)
        name = find_dialect(parsed)
        dialect = self._dialects[name]()
        self._conversation, answer, call = dialect.decode(parsed, self._conversation)
        other_route = (
            InvalidMessage(parsed.id, "INVALID_PARAMS", _OTHER_ROUTE) if self._mcp_only and name != "mcp" else None
        )
        if call is None:
            return TransportAction(answer if other_route is None else message.rejection(other_route))
        fault = parsed.fault or find_call_fault(parsed) or other_route
        return TransportAction(call=Incoming(parsed.id, call._replace(fault=fault), dialect))


def to_call_request(
    call: ToolCall,
    principal: "Principal | None" = None,
    report_progress: Callable[[int, int | None], None] | None = None,
) -> "CallRequest":
    """Convert a decoded tool call to the application's request. Progress is reported only if the client asked."""
    from kaiza.domain.call import CallFault, CallRequest  # noqa: PLC0415  not before the first answer: start-up time

    fault = None if call.fault is None else CallFault(*call.fault[1:])
    return CallRequest(
        call.tool_name,
        call.arguments,
        call.client,
        call.conversational,
        fault,
        principal,
        report_progress=None if call.progress_token is None else report_progress,
        traceparent=call.traceparent,
    )
