"""Runs the calls of all transports: on threads, in the order that the queue decides, each until its deadline.

Who answers a call, its thread or its deadline, is decided by the application's claim: only one of `answer` and `expire`
returns an outcome. Here a call is answered once even if a bug ends its thread.
"""

import math
import threading
import time
from collections.abc import Callable, Collection
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kaiza.server.call_queue import CallQueue, QueuedCall, find_lane
from kaiza.server.pipeline import Incoming, to_call_request
from kaiza.wire import message
from kaiza.wire.message import InvalidMessage, RequestId

if TYPE_CHECKING:
    from kaiza.app import App
    from kaiza.domain.call import Outcome, Principal

IDLE_THREADS: Final = 8
"""Threads that are kept while there is nothing for them to do."""

RECHECK_SECONDS: Final = 0.05
"""While calls wait: pause before it is looked whether those that run are stuck."""


class CallAnswer(NamedTuple):
    """Encoded answer, and the outcome if it is that of a call."""

    line: bytes
    outcome: "Outcome | None" = None


class ServedCall(QueuedCall):
    """One call, from its arrival until its answer is sent."""

    def __init__(
        self,
        incoming: Incoming,
        size: int,
        on_answer: Callable[["ServedCall", CallAnswer], None],
        principal: "Principal | None" = None,
        report_progress: Callable[[int, int | None], None] | None = None,
    ) -> None:
        super().__init__(find_lane(incoming.call.tool_name), principal)
        self.incoming: Final = incoming
        self.size: Final = size
        """Of the request, in bytes."""
        self.on_answer: Final = on_answer
        """Sends the answer. Called once, on any thread."""
        self.report_progress = report_progress
        self.stamped: Any = None
        """The application's call; None until there is an application."""
        self.is_expired = False
        """Its time is up, or the server ends: it is not begun any more."""
        self.is_answered = False
        self.is_suppressed = False
        """The client has cancelled the request and gets no answer. The call runs to its end and is recorded."""


class CallRunner:
    """Calls in flight, their threads and their deadlines. Thread-safe."""

    def __init__(self) -> None:
        # Protects all members. Not held while a call runs, expires or is answered.
        self._lock = threading.Lock()
        self._was_sent = threading.Condition(self._lock)
        self._is_sooner = threading.Condition(self._lock)
        """Notified when the clock has to look earlier than at `_look_at`."""
        self._look_at = math.inf
        self._app: App | None = None
        self._is_started = False
        self._in_flight: dict[ServedCall, None] = {}
        """Calls whose answer is not sent, in order."""
        self._queue: CallQueue[ServedCall] = CallQueue()
        self._held: dict[ServedCall, list[ServedCall]] = {}
        """Calls that take no place before the answer of another one is sent."""
        self._ready: SimpleQueue[ServedCall] = SimpleQueue()
        """Calls that have a place; each has a thread, which waits for it or is started."""
        self._idle_threads = 0
        self._on_drained: Callable[[], None] | None = None

    def start(self, app: "App | None") -> None:
        """Run calls, first those that are waiting already. Without an application each is answered with an error."""
        with self._lock:
            self._app, self._is_started = app, True
            # All of them, so that those that wait for a place expire like the others.
            for call in self._in_flight:
                self._stamp(call)
            threading.Thread(target=self._watch_clock, name="kaiza-clock", daemon=True).start()
            self._start_ready()

    def submit(self, call: ServedCall, after: ServedCall | None = None) -> None:
        """Run a call when it is its turn, and not before the answer of another one is sent."""
        with self._lock:
            self._in_flight[call] = None
            if self._is_started:
                self._stamp(call)
            if after is not None and after in self._in_flight:
                self._held.setdefault(after, []).append(call)
            else:
                self._queue.add(call)
                self._start_ready()

    def list_in_flight(self) -> list[ServedCall]:
        """Calls whose answer is not sent, in the order of their arrival."""
        with self._lock:
            return list(self._in_flight)

    def wait_for_room(self, has_room: Callable[[Collection[ServedCall]], bool]) -> None:
        """Wait until there is room beside the calls in flight."""
        with self._lock:
            self._was_sent.wait_for(lambda: has_room(self._in_flight))

    def drain(self, on_drained: Callable[[], None]) -> None:
        """Call back when no call is in flight."""
        with self._lock:
            self._on_drained = on_drained
            is_drained = not self._in_flight
        if is_drained:
            on_drained()

    def end_calls(self) -> None:
        """Expire all calls because the server ends, also those that wait, so that each has a record."""
        with self._lock:
            app, calls = self._app, list(self._in_flight)
            for call in calls:
                self._withdraw(call)
        if app is None:
            return
        expired = [(call, app.expire(call.stamped, "shutdown")) for call in calls]
        # Only after the last record: a client that does not read must not keep the other calls from theirs.
        for call, outcome in expired:
            if outcome is not None:
                self._answer(call, CallAnswer(call.incoming.encode(outcome), outcome))

    def _stamp(self, call: ServedCall) -> None:
        """Give a call its id and its deadline."""
        if self._app is not None:
            call.stamped = self._app.stamp(to_call_request(call.incoming.call, call.principal, call.report_progress))
            self._look_before(call.stamped.deadline)

    def _start_ready(self) -> None:
        """Give a thread to each call whose turn it is."""
        if not self._is_started:
            return
        now = time.monotonic()
        while (call := self._queue.take(now)) is not None:
            self._ready.put(call)
            if self._idle_threads:
                self._idle_threads -= 1
            else:
                threading.Thread(target=self._work, name="kaiza-call", daemon=True).start()
        if self._queue.is_waiting():
            self._look_before(now + RECHECK_SECONDS)

    def _work(self) -> None:
        """Run calls, on a thread, until there is nothing left for it."""
        is_kept = True
        while is_kept:
            call, is_kept = self._ready.get(), False
            try:
                self._run(call)
                is_kept = True
            finally:
                # A bug ends the thread and is printed. Another thread is started for the next call that needs one.
                with self._lock:
                    self._queue.finish(call)
                    is_kept = is_kept and self._idle_threads < IDLE_THREADS
                    self._idle_threads += is_kept
                    self._start_ready()

    def _run(self, call: ServedCall) -> None:
        """Run a call and answer it, unless its deadline has."""
        answer: CallAnswer | None = CallAnswer(internal_error(call.incoming.request_id))
        try:
            if call.is_expired:  # while it was held, or just now
                answer = None
            elif self._app is None:
                reason = "The server could not start. Run kaiza doctor."
                answer = CallAnswer(internal_error(call.incoming.request_id, reason))
            else:
                outcome = self._app.answer(call.stamped)
                answer = None if outcome is None else CallAnswer(call.incoming.encode(outcome), outcome)
        finally:
            if answer is not None:
                self._answer(call, answer)

    def _answer(self, call: ServedCall, answer: CallAnswer) -> None:
        """Send an answer, unless the call has one. Then those that waited for it may run."""
        with self._lock:
            is_first, call.is_answered = not call.is_answered, True
        if not is_first:
            return
        try:
            call.on_answer(call, answer)
        finally:
            with self._lock:
                del self._in_flight[call]
                for held in self._held.pop(call, ()):
                    self._queue.add(held)
                self._start_ready()
                self._was_sent.notify()
                on_drained = None if self._in_flight else self._on_drained
            if on_drained is not None:
                on_drained()

    def _withdraw(self, call: ServedCall) -> None:
        """Keep a call that has not begun from beginning."""
        call.is_expired = True
        self._queue.remove(call)

    def _look_before(self, at: float) -> None:
        """Make the clock look at this time, if it would look later."""
        if at < self._look_at:
            self._look_at = at
            self._is_sooner.notify()

    def _watch_clock(self) -> None:
        """Expire calls at their deadlines, and start those that wait for stuck ones."""
        with self._lock:
            while True:
                now = time.monotonic()
                stamped = [call for call in self._in_flight if call.stamped is not None and not call.is_expired]
                deadlines = {call: call.stamped.deadline for call in stamped}
                for call in [call for call, deadline in deadlines.items() if deadline <= now]:
                    del deadlines[call]
                    self._withdraw(call)
                    # A thread each: its record is written, and a slow disk must not delay other deadlines.
                    threading.Thread(target=self._expire, args=(call,), name="kaiza-overdue", daemon=True).start()
                # A call that ends does not move this time: one look that finds nothing to do is cheaper than a
                # wake-up for each call.
                self._look_at = min(deadlines.values(), default=math.inf)
                self._start_ready()
                self._is_sooner.wait(min(self._look_at - time.monotonic(), threading.TIMEOUT_MAX))

    def _expire(self, call: ServedCall) -> None:
        """Answer a call whose deadline has passed, and let another one run beside its thread if that is stuck."""
        assert self._app is not None  # noqa: S101  it has stamped the call
        outcome = self._app.expire(call.stamped)
        if outcome is not None:
            self._answer(call, CallAnswer(call.incoming.encode(outcome), outcome))
            with self._lock:
                self._queue.release_stuck(call)
                self._start_ready()


def internal_error(request_id: RequestId | None, reason: str = message.BUG_REASON) -> bytes:
    """The answer to a request that failed because of a bug."""
    return message.rejection(InvalidMessage(request_id, "INTERNAL_ERROR", reason))
