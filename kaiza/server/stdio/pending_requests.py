"""Which requests wait for their answer: an id names one of them at a time, and each is answered at most once."""

import threading
from collections.abc import Callable
from typing import Any, Final

from kaiza.server.pipeline import Incoming
from kaiza.server.stdio.worker_pool import Job
from kaiza.wire.message import RequestId

RequestKey = tuple[bool, RequestId]

_SESSION_OPENER: Final = "begin_session"
_SESSIONLESS_TOOL: Final = "server_info"


class PendingRequest:
    """One tool call on its way."""

    __slots__ = ("_after", "_answered", "call", "hushed", "incoming", "job", "request_id", "settled", "taken")

    def __init__(self, incoming: Incoming, after: "PendingRequest | None") -> None:
        self.incoming: Final = incoming
        self.request_id: Final = incoming.request_id
        self._after = after
        self._answered = threading.Event() if incoming.call.tool_name == _SESSION_OPENER else None
        self.call: Any = None
        self.job: Job | None = None
        """What a worker is asked to do for it."""
        self.taken = False
        self.settled = False
        self.hushed = False
        """The client has said that it wants no answer."""

    @property
    def has_pending_session(self) -> bool:
        """Whether a session was asked for before it and had no answer then."""
        return self._after is not None

    def wait_for_session(self) -> None:
        """Let a session begin that was asked for before: what follows it in one breath may count on it."""
        if self._after is not None:
            self._after.wait_answered()
        self._after = None

    def wait_answered(self) -> None:
        """Return once a session's beginning is answered."""
        if self._answered is not None:
            self._answered.wait()

    def mark_answered(self) -> None:
        """Its answer is out: what waited for it may go on."""
        if self._answered is not None:
            self._answered.set()


class PendingRequests:
    """The table. Its lock protects the entries and is never held while anything else is done."""

    def __init__(self, on_idle: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._pending: dict[RequestKey, PendingRequest] = {}
        self._session_request: PendingRequest | None = None
        self._unsent_count = 0
        self._is_closing = False
        self._on_idle = on_idle

    def has_id(self, request_id: RequestId) -> bool:
        """Whether the id names a request that waits. `1` and `"1"` are two ids."""
        return _request_key(request_id) in self._pending

    def add(self, incoming: Incoming) -> PendingRequest:
        """Enter a tool call under an id that is free."""
        with self._lock:
            tool_name = incoming.call.tool_name
            entry = PendingRequest(incoming, self._session_request if tool_name != _SESSIONLESS_TOOL else None)
            self._pending[_request_key(incoming.request_id)] = entry
            self._unsent_count += 1
            if tool_name == _SESSION_OPENER:
                self._session_request = entry
        return entry

    def suppress_answer(self, request_id: object) -> None:
        """Keep back the answer of a request that its client has cancelled; the call itself goes on and is recorded."""
        if isinstance(request_id, str | int | float) and not isinstance(request_id, bool):
            with self._lock:
                entry = self._pending.get(_request_key(request_id))
                if entry is not None:
                    entry.hushed = True

    def claim(self, entry: PendingRequest) -> bool:
        """True for whoever first wants to make the call, once."""
        with self._lock:
            mine, entry.taken = not entry.taken, True
        return mine

    def finish(self, entry: PendingRequest) -> bool:
        """True for whoever first has the answer, once; from here on the id is free again."""
        with self._lock:
            mine = not entry.settled
            if mine:
                entry.settled = True
                del self._pending[_request_key(entry.request_id)]
                self._session_request = None if entry is self._session_request else self._session_request
        return mine

    def mark_sent(self, entry: PendingRequest) -> None:
        """A settled entry's answer is out, or kept back for good."""
        entry.mark_answered()
        with self._lock:
            self._unsent_count -= 1
            idle = self._is_closing and not self._unsent_count
        if idle:
            self._on_idle()

    def close(self) -> bool:
        """Report from now on when the last answer is out; True where nothing is waiting already."""
        with self._lock:
            self._is_closing = True
            return not self._unsent_count

    def list_unanswered(self) -> list[PendingRequest]:
        """The entries that have no answer yet."""
        with self._lock:
            return list(self._pending.values())


def _request_key(request_id: RequestId) -> RequestKey:
    return isinstance(request_id, str), request_id
