"""What a transport asks of the house, and nothing more."""

from typing import TYPE_CHECKING, Any, Protocol

from kaiza.wire.dialect import ToolCall

if TYPE_CHECKING:
    from kaiza.domain.call import Ask, Outcome


class App(Protocol):
    """The house behind the door."""

    def stamp(self, ask: "Ask", /) -> Any:
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


def to_ask(call: ToolCall) -> "Ask":
    """A decoded tool call as the application takes it."""
    from kaiza.domain.call import Ask  # noqa: PLC0415  loaded with the application, not before the first answer

    return Ask(call.tool_name, call.arguments, call.client, call.conversational)
