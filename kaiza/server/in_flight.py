"""Which requests wait for their answer: an id names one of them at a time, and each is answered at most once."""

import threading
from collections.abc import Callable
from typing import Any, Final

from kaiza.server.crew import Job
from kaiza.server.pipeline import Incoming
from kaiza.wire.message import Id

Key = tuple[bool, Id]

_BEGINS: Final = "begin_session"
_TELLS_NO_SESSION: Final = "server_info"


class Entry:
    """One tool call on its way."""

    __slots__ = ("_after", "_answered", "call", "hushed", "incoming", "job", "request_id", "settled", "taken")

    def __init__(self, incoming: Incoming, after: "Entry | None") -> None:
        self.incoming: Final = incoming
        self.request_id: Final = incoming.request_id
        self._after = after
        self._answered = threading.Event() if incoming.call.tool_name == _BEGINS else None
        self.call: Any = None
        self.job: Job | None = None
        """What a worker is asked to do for it."""
        self.taken = False
        self.settled = False
        self.hushed = False
        """The client has said that it wants no answer."""

    @property
    def follows_a_beginning(self) -> bool:
        """Whether a session was asked for before it and had no answer then."""
        return self._after is not None

    def wait(self) -> None:
        """Let a session begin that was asked for before: what follows it in one breath may count on it."""
        if self._after is not None:
            self._after.await_answer()
        self._after = None

    def await_answer(self) -> None:
        """Return once a session's beginning is answered."""
        if self._answered is not None:
            self._answered.wait()

    def close(self) -> None:
        """Its answer is out: what waited for it may go on."""
        if self._answered is not None:
            self._answered.set()


class InFlight:
    """The table. Its lock protects the entries and is never held while anything else is done."""

    def __init__(self, on_idle: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._entries: dict[Key, Entry] = {}
        self._beginning: Entry | None = None
        self._unsent = 0
        self._closing = False
        self._on_idle = on_idle

    def uses(self, request_id: Id) -> bool:
        """Whether the id names a request that waits. `1` and `"1"` are two ids."""
        return _key(request_id) in self._entries

    def admit(self, incoming: Incoming) -> Entry:
        """Enter a tool call under an id that is free."""
        with self._lock:
            tool_name = incoming.call.tool_name
            entry = Entry(incoming, self._beginning if tool_name != _TELLS_NO_SESSION else None)
            self._entries[_key(incoming.request_id)] = entry
            self._unsent += 1
            if tool_name == _BEGINS:
                self._beginning = entry
        return entry

    def hush(self, request_id: object) -> None:
        """Keep back the answer of a request that its client has cancelled; the call itself goes on and is recorded."""
        if isinstance(request_id, str | int | float) and not isinstance(request_id, bool):
            with self._lock:
                entry = self._entries.get(_key(request_id))
                if entry is not None:
                    entry.hushed = True

    def take(self, entry: Entry) -> bool:
        """True for whoever first wants to make the call, once."""
        with self._lock:
            mine, entry.taken = not entry.taken, True
        return mine

    def settle(self, entry: Entry) -> bool:
        """True for whoever first has the answer, once; from here on the id is free again."""
        with self._lock:
            mine = not entry.settled
            if mine:
                entry.settled = True
                del self._entries[_key(entry.request_id)]
                self._beginning = None if entry is self._beginning else self._beginning
        return mine

    def sent(self, entry: Entry) -> None:
        """A settled entry's answer is out, or kept back for good."""
        entry.close()
        with self._lock:
            self._unsent -= 1
            idle = self._closing and not self._unsent
        if idle:
            self._on_idle()

    def close(self) -> bool:
        """Report from now on when the last answer is out; True where nothing is waiting already."""
        with self._lock:
            self._closing = True
            return not self._unsent

    def waiting(self) -> list[Entry]:
        """The entries that have no answer yet."""
        with self._lock:
            return list(self._entries.values())


def _key(request_id: Id) -> Key:
    return isinstance(request_id, str), request_id
