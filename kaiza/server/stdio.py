"""MCP over standard input and output: no line is dropped, no answer lost, no exit before the record is in order."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from kaiza.server.clock import Clock
from kaiza.server.crew import Crew, Job
from kaiza.server.in_flight import Entry, InFlight
from kaiza.server.later import Later
from kaiza.server.lines import Lines
from kaiza.server.news import BROKEN, CLOSED, END, FAILED, GONE, IDLE, SIGNALS, News
from kaiza.server.outlet import Outlet
from kaiza.server.pipeline import Incoming, Pipeline, Step
from kaiza.server.surface import App, to_ask
from kaiza.wire import frame, message, reply
from kaiza.wire.message import Id, Notification, Refusal, Request

DRAIN_SECONDS: Final = 2.0
"""How long calls may go on after a signal, or after their answers have lost their reader."""

END_SECONDS: Final = 2.2
"""How long after it a call that can no longer be ended is waited for."""

EXIT_SECONDS: Final = 2.5
"""How long after it, or else after the last answer, the process waits for whatever is stuck."""

QUICK_TOOLS: Final = frozenset({"server_info", "session_status"})
"""They take a moment, and wait behind no other call but the beginning of a session that they tell of."""

_CUT_SHORT: Final = frozenset({BROKEN, GONE, *SIGNALS})
"""From this news on the limits above count; the end of input alone leaves every call its own time."""


class Stdio:
    """One client on one pair of descriptors."""

    def __init__(self, incoming: int, outgoing: int, pipeline: Pipeline, make: Callable[[], App]) -> None:
        self._news = News()
        self._lines = Lines(incoming, frame.MAX_LINE)
        self._outlet = Outlet(outgoing, partial(self._news.put, BROKEN))
        self._pipeline = pipeline
        self._app = Later(make, partial(self._news.put, FAILED))
        self._in_flight = InFlight(partial(self._news.put, IDLE))
        self._clock = Clock(self._overdue)
        self._crew = Crew(self._read)
        self._stamping = threading.Lock()
        """Held while a call gets its time, so that it gets one."""
        self._stopping = False
        self._cut_short: float | None = None
        self._news.watch_reader(outgoing)

    def serve(self) -> bool:
        """Serve until the client or a signal ends it; False where something was still stuck then."""
        self._news.listen_to_signals()
        self._crew.start()
        self._await({END, FAILED, *_CUT_SHORT}, DRAIN_SECONDS)
        self._stopping = True
        if not self._in_flight.close() and not self._await({IDLE}, DRAIN_SECONDS):
            threading.Thread(target=self._end_calls, name="kaiza-end", daemon=True).start()
            self._await({IDLE}, END_SECONDS)
        self._cut_short = self._cut_short or time.monotonic()
        threading.Thread(target=self._close, name="kaiza-close", daemon=True).start()
        return self._await({CLOSED}, EXIT_SECONDS)

    def failure(self) -> Exception | None:
        """Why the house could not be built, where it was tried in vain."""
        return self._app.failure()

    def _await(self, wanted: set[bytes], grace: float) -> bool:
        """Wait for one of these news; once a signal has come or the reader has gone, only so long after it."""
        while True:
            left = None if self._cut_short is None else max(0.0, self._cut_short + grace - time.monotonic())
            news = self._news.next(left)
            if news is None:
                return False
            if news in _CUT_SHORT and self._cut_short is None:
                self._cut_short = time.monotonic()
            if news in wanted:
                return True

    def _read(self) -> Job | None:
        """The next tool call; whatever is said before it is dealt with here, by whoever has the turn."""
        for line in self._lines:
            if self._stopping:
                return None
            job = self._hear(line)
            if job is not None:
                return job
        self._news.put(END)
        return None

    def _hear(self, line: bytes | None) -> Job | None:
        said = self._pipeline.hear(line)
        if isinstance(said, Request) and self._in_flight.uses(said.id):
            said = message.in_use(said.id)
        answer, call, cancelled = self._step(said)
        if answer is not None:
            self._outlet.send(answer)
        if isinstance(said, Request) and said.method == "tools/list":
            self._app.begin()
        self._in_flight.hush(cancelled)
        return None if call is None else self._admit(call)

    def _admit(self, incoming: Incoming) -> Job:
        """A call's job. Its time counts from here on, or from when the house is there."""
        entry = self._in_flight.admit(incoming)
        entry.job = Job(partial(self._make, entry))
        app = self._app.made()
        if app is not None:
            self._stamp(app, entry)
        return entry.job._replace(quick=incoming.call.tool_name in QUICK_TOOLS and not entry.follows_a_beginning)

    def _stamp(self, app: App, entry: Entry) -> None:
        """Give a call its time, once, and have the clock watch it."""
        with self._stamping:
            if entry.call is None:
                entry.call = app.stamp(to_ask(entry.incoming.call))
                self._clock.watch(entry)

    def _step(self, said: Refusal | Notification | Request) -> Step:
        """What is to be done; should that fail, whoever asked is told before the failure is."""
        step: Step | None = None
        try:
            step = self._pipeline.step(said)
        finally:
            if step is None and not isinstance(said, Notification):
                self._outlet.send(_failed(said.id))
        return step

    def _make(self, entry: Entry) -> None:
        """Make the call and answer it, unless the clock answers first."""
        entry.wait()
        if not self._in_flight.take(entry):
            return
        answer: bytes | None = b""
        try:
            answer = self._made(entry)
        finally:
            self._clock.forget(entry)
            if answer is None:
                self._crew.take_back()
            else:
                self._answer(entry, answer or _failed(entry.request_id))

    def _made(self, entry: Entry) -> bytes | None:
        app = self._app.get()
        if app is None:
            return _failed(entry.request_id, "The server could not start.")
        if entry.call is None:
            for waiting in self._in_flight.waiting():  # all that were read before the house was there
                self._stamp(app, waiting)
        outcome = app.answer(entry.call)
        return None if outcome is None else entry.incoming.encode(outcome)

    def _overdue(self, entry: Entry) -> None:
        """Answer for a worker that takes too long, and put another in its place; or for a call that had none yet."""
        waits = self._in_flight.take(entry)
        if waits and entry.job is not None:
            self._crew.drop(entry.job)
        app = self._app.begun()
        if app is not None and self._expire(app, entry, "timeout") and not waits:
            self._crew.write_off()

    def _expire(self, app: App, entry: Entry, cap: str) -> bool:
        """Answer for whoever makes the call, unless it can no longer be ended."""
        outcome = app.expire(entry.call, cap)
        if outcome is not None:
            self._answer(entry, entry.incoming.encode(outcome))
        return outcome is not None

    def _answer(self, entry: Entry, answer: bytes) -> None:
        if self._in_flight.settle(entry):
            if not entry.hushed:
                self._outlet.send(answer)
            self._in_flight.sent(entry)

    def _end_calls(self) -> None:
        """Record and answer the calls that were given no more time; those that wait for a worker too."""
        app = self._app.begun()
        if app is None:
            return
        for entry in self._in_flight.waiting():
            self._stamp(app, entry)
            self._expire(app, entry, "shutdown")

    def _close(self) -> None:
        """Leave the house in order, and no half a line behind."""
        try:
            app = self._app.begun()
            if app is not None:
                app.close()
        finally:
            self._outlet.finish()
            self._news.put(CLOSED)


def _failed(request_id: Id | None, reason: str = "Kaiza itself failed.") -> bytes:
    return reply.refused(Refusal(request_id, "INTERNAL_ERROR", reason))
