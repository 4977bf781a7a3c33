"""Table of pending requests: an id belongs to at most one, and each is answered at most once."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kaiza.server.pipeline import Exchange, Incoming
from kaiza.server.stdio.worker_pool import Job
from kaiza.wire.message import RequestId
from kaiza.wire.numbers import WideNumber

if TYPE_CHECKING:
    from kaiza.domain.call import Outcome

RequestKey = tuple[bool, RequestId]

SESSION_OPENER: Final = "begin_session"
_SESSIONLESS_TOOL: Final = "server_info"

MAX_UNSENT: Final = 256
"""Calls that wait, run, or have an answer that the client has not read. With so many, nothing more is read."""

MAX_UNSENT_BYTES: Final = 32 << 20
"""The same in bytes of requests; the last of them may go beyond it."""


class PendingRequest:
    """One tool call that is not yet answered."""

    def __init__(self, incoming: Incoming, exchange: Exchange, session_request: "PendingRequest | None") -> None:
        self.incoming: Final = incoming
        self.exchange: Final = exchange
        self.request_id: Final = incoming.request_id
        self._session_request = session_request
        self._is_answered = False
        self.call: Any = None
        self.job: Job | None = None
        self.outcome: Outcome | None = None
        self.is_claimed = False
        self.is_finished = False
        self.is_suppressed = False
        """The client has cancelled the request and gets no answer."""

    def awaits_session(self) -> bool:
        """Whether an unanswered `begin_session` precedes it: a client may send it and the next calls in one write."""
        if self._session_request is not None and self._session_request._is_answered:  # noqa: SLF001  its own class
            self._session_request = None
        return self._session_request is not None

    def mark_answered(self) -> None:
        """Note that its answer was sent or suppressed."""
        self._is_answered = True


class PendingRequests:
    """The pending requests of one connection. Its lock protects their states, and is held for nothing else."""

    def __init__(self, on_idle: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._room_available = threading.Condition(self._lock)
        """Notified when an answer was sent."""
        self._pending: dict[RequestKey, PendingRequest] = {}
        """The request that each id belongs to."""
        self._unanswered: dict[PendingRequest, None] = {}
        """In order. Some are refused because their id belongs to another."""
        self._session_request: PendingRequest | None = None
        self._unsent_count = 0
        self._unsent_bytes = 0
        self._is_closing = False
        self._on_idle = on_idle

    def has_id(self, request_id: RequestId) -> bool:
        """Whether a request with this id is pending. `1` and `"1"` are different ids."""
        return _request_key(request_id) in self._pending

    def wait_for_room(self) -> None:
        """Wait until another call may be added. So a client that reads no answers cannot fill the memory."""
        with self._lock:
            while self._unsent_count >= MAX_UNSENT or self._unsent_bytes >= MAX_UNSENT_BYTES:
                self._room_available.wait()

    def add(self, incoming: Incoming, exchange: Exchange) -> PendingRequest:
        """Add a tool call. An id that is pending goes on belonging to the call that has it."""
        with self._lock:
            tool_name = incoming.call.tool_name
            awaited = self._session_request if tool_name != _SESSIONLESS_TOOL else None
            entry = PendingRequest(incoming, exchange, awaited)
            self._pending.setdefault(_request_key(incoming.request_id), entry)
            self._unanswered[entry] = None
            self._unsent_count += 1
            self._unsent_bytes += exchange.size
            if tool_name == SESSION_OPENER:
                self._session_request = entry
        return entry

    def suppress_answer(self, request_id: object) -> None:
        """Suppress the answer of a cancelled request; the call itself runs to its end and is recorded."""
        if isinstance(request_id, str | int | float) and not isinstance(request_id, bool):
            with self._lock:
                entry = self._pending.get(_request_key(request_id))
                if entry is not None:
                    entry.is_suppressed = True

    def claim(self, entry: PendingRequest) -> bool:
        """Claim the call for running it; True only for the first caller, a worker or the deadline watcher."""
        with self._lock:
            is_first, entry.is_claimed = not entry.is_claimed, True
        return is_first

    def finish(self, entry: PendingRequest) -> bool:
        """Claim the answer; True only for the first caller. The id may be used again from here on."""
        with self._lock:
            is_first = not entry.is_finished
            if is_first:
                entry.is_finished = True
                del self._unanswered[entry]
                key = _request_key(entry.request_id)
                if self._pending.get(key) is entry:
                    del self._pending[key]
                self._session_request = None if entry is self._session_request else self._session_request
        return is_first

    def mark_sent(self, entry: PendingRequest) -> None:
        """Note that the answer of a finished request was sent or suppressed."""
        entry.mark_answered()
        with self._lock:
            self._unsent_count -= 1
            self._unsent_bytes -= entry.exchange.size
            self._room_available.notify()
            is_idle = self._is_closing and not self._unsent_count
        if is_idle:
            self._on_idle()

    def close(self) -> bool:
        """Call `on_idle` once the last answer is sent; True if there is none to wait for."""
        with self._lock:
            self._is_closing = True
            return not self._unsent_count

    def list_unanswered(self) -> list[PendingRequest]:
        """Requests that have no answer yet."""
        with self._lock:
            return list(self._unanswered)


def _request_key(request_id: RequestId) -> RequestKey:
    # 1 and 1.0 are equal and collide, as they must: a client could not tell their answers apart.
    # Infinities are equal, too, but their digits are not.
    return isinstance(request_id, str), request_id.text if isinstance(request_id, WideNumber) else request_id


class DeadlineWatcher:
    """Calls `on_overdue` for every watched call that passes its deadline."""

    def __init__(self, on_overdue: Callable[[PendingRequest], None]) -> None:
        self._on_overdue = on_overdue
        self._watched: set[PendingRequest] = set()
        self._wake_at: float | None = None
        # Protects all members; notified when a new deadline is nearer than the one slept for.
        self._condition = threading.Condition(threading.Lock())
        self._is_running = False

    def watch(self, entry: PendingRequest) -> None:
        """Call `on_overdue`, in a new thread, if the call is still watched at its deadline."""
        with self._condition:
            self._watched.add(entry)
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="kaiza-clock", daemon=True).start()
            elif self._wake_at is None or entry.call.deadline < self._wake_at:
                self._condition.notify()

    def unwatch(self, entry: PendingRequest) -> None:
        """Stop watching a call that has ended."""
        with self._condition:
            self._watched.discard(entry)

    def _run(self) -> None:
        while True:
            for entry in self._wait_for_overdue():
                # A thread each: expiring a call writes its record, and a slow disk must not delay other deadlines.
                threading.Thread(target=self._on_overdue, args=(entry,), name="kaiza-overdue", daemon=True).start()

    def _wait_for_overdue(self) -> list[PendingRequest]:
        """Sleep until the nearest deadline or a notification; the calls that are overdue then, no longer watched."""
        with self._condition:
            self._wake_at = min((entry.call.deadline for entry in self._watched), default=None)
            self._condition.wait(None if self._wake_at is None else max(0.0, self._wake_at - time.monotonic()))
            now = time.monotonic()
            overdue = [entry for entry in self._watched if entry.call.deadline <= now]
            self._watched.difference_update(overdue)
            return overdue
