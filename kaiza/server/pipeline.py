"""A line in, a step out: every transport asks its questions here, so that all of them refuse alike.

The pipeline is used by one thread at a time, in the order in which lines came in.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kaiza.wire import message, reply
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
            return TransportAction(answer=reply.rejection(said))
        if isinstance(said, Notification):
            cancelled = said.params.get("requestId") if said.method == "notifications/cancelled" else None
            return TransportAction(cancelled=cancelled)
        dialect = next(one for one in self._dialects if one.can_decode(said))
        self._conversation, answer, call = dialect.decode(said, self._conversation)
        return TransportAction(answer, None if call is None else Incoming(said.id, call, dialect))
