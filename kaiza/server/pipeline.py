"""A line in, a step out: every transport asks its questions here, so that all of them refuse alike.

The pipeline is used by one thread at a time, in the order in which lines came in.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kaiza.wire import message, reply
from kaiza.wire.dialect import Conversation, Dialect, ToolCall
from kaiza.wire.message import Id, Notification, Refusal, Request

if TYPE_CHECKING:
    from kaiza.domain.call import Outcome


class Incoming(NamedTuple):
    """A tool call under the id of its request, in the dialect that its answer is to have."""

    request_id: Id
    call: ToolCall
    dialect: Dialect

    def encode(self, outcome: "Outcome") -> bytes:
        """The line that answers it."""
        return self.dialect.encode(self.request_id, outcome, self.call.reply_form)


class Step(NamedTuple):
    """What a line asks the transport to do: send an answer, make a call, hush another, or nothing."""

    answer: bytes | None = None
    call: Incoming | None = None
    cancelled: object = None


class Pipeline:
    """The dialects, asked in order, and what the pipe has been used for so far."""

    def __init__(self, dialects: Sequence[Dialect]) -> None:
        self._dialects = dialects
        self._conversation = Conversation()

    def hear(self, line: bytes | None) -> Refusal | Notification | Request:
        """What the line says; None is a line beyond the bound."""
        return message.too_long() if line is None else message.read(line)

    def step(self, said: Refusal | Notification | Request) -> Step:
        """What is to be done about it."""
        if isinstance(said, Refusal):
            return Step(answer=reply.refused(said))
        if isinstance(said, Notification):
            cancelled = said.params.get("requestId") if said.method == "notifications/cancelled" else None
            return Step(cancelled=cancelled)
        dialect = next(one for one in self._dialects if one.claims(said))
        self._conversation, answer, call = dialect.decode(said, self._conversation)
        return Step(answer, None if call is None else Incoming(said.id, call, dialect))
