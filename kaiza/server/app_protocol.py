"""What a transport asks of the house, and nothing more."""

from typing import TYPE_CHECKING, Any, Protocol

from kaiza.wire.dialect import ToolCall

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
