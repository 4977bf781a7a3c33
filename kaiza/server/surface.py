"""What a transport asks of the house, and nothing more."""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kaiza.wire.mcp import Wanted
from kaiza.wire.message import Id

if TYPE_CHECKING:
    from collections.abc import Callable

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


class Desk(NamedTuple):
    """Where tool calls are made: the house, and the words to ask it and to tell what it answered."""

    app: App
    ask: "Callable[[Wanted], Ask]"
    tell: "Callable[[Id, Wanted, Outcome], bytes]"
