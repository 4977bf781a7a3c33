"""MCP over standard input and output: no line is dropped, no answer lost, no exit before the record is in order."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from kaiza.server.pipeline import AppProtocol, Incoming, Pipeline, TransportAction, to_call_request
from kaiza.server.stdio.deadlines import DeadlineWatcher
from kaiza.server.stdio.framing import LineReader, LineWriter
from kaiza.server.stdio.lazy_app import LazyApp
from kaiza.server.stdio.pending_requests import PendingRequest, PendingRequests
from kaiza.server.stdio.wakeup_pipe import (
    ALL_ANSWERED,
    APP_CLOSED,
    BUILD_FAILED,
    INPUT_ENDED,
    OUTPUT_BROKEN,
    READER_GONE,
    SIGNALS,
    WakeupPipe,
)
from kaiza.server.stdio.worker_pool import Job, WorkerPool
from kaiza.wire import framing, message
from kaiza.wire.message import InvalidMessage, Notification, Request, RequestId

DRAIN_SECONDS: Final = 2.0
"""How long calls may go on after a signal, or after their answers have lost their reader."""

END_SECONDS: Final = 2.2
"""How long after it a call that can no longer be ended is waited for."""

EXIT_SECONDS: Final = 2.5
"""How long after it, or else after the last answer, the process waits for whatever is stuck."""

QUICK_TOOLS: Final = frozenset({"server_info", "session_status"})
"""They take a moment, and wait behind no other call but the beginning of a session that they tell of."""

_SHUTDOWN_EVENTS: Final = frozenset({OUTPUT_BROKEN, READER_GONE, *SIGNALS})
"""From this news on the limits above count; the end of input alone leaves every call its own time."""


class StdioTransport:
    """One client on one pair of descriptors."""

    def __init__(self, incoming: int, outgoing: int, pipeline: Pipeline, make: Callable[[], AppProtocol]) -> None:
        self._wakeup = WakeupPipe()
        self._reader = LineReader(incoming, framing.MAX_LINE)
        self._writer = LineWriter(outgoing, partial(self._wakeup.put, OUTPUT_BROKEN))
        self._pipeline = pipeline
        self._app = LazyApp(make, partial(self._wakeup.put, BUILD_FAILED))
        self._pending = PendingRequests(partial(self._wakeup.put, ALL_ANSWERED))
        self._deadlines = DeadlineWatcher(self._handle_overdue)
        self._workers = WorkerPool(self._read_job)
        self._stamp_lock = threading.Lock()
        """Held while a call gets its time, so that it gets one."""
        self._is_stopping = False
        self._shutdown_at: float | None = None
        self._wakeup.watch_reader(outgoing)

    def serve(self) -> bool:
        """Serve until the client or a signal ends it; False where something was still stuck then."""
        self._wakeup.listen_to_signals()
        self._workers.start()
        self._wait_for({INPUT_ENDED, BUILD_FAILED, *_SHUTDOWN_EVENTS}, DRAIN_SECONDS)
        self._is_stopping = True
        if not self._pending.close() and not self._wait_for({ALL_ANSWERED}, DRAIN_SECONDS):
            threading.Thread(target=self._end_calls, name="kaiza-end", daemon=True).start()
            self._wait_for({ALL_ANSWERED}, END_SECONDS)
        self._shutdown_at = self._shutdown_at or time.monotonic()
        threading.Thread(target=self._close_app, name="kaiza-close", daemon=True).start()
        return self._wait_for({APP_CLOSED}, EXIT_SECONDS)

    def failure(self) -> Exception | None:
        """Why the house could not be built, where it was tried in vain."""
        return self._app.failure()

    def _wait_for(self, wanted: set[bytes], grace: float) -> bool:
        """Wait for one of these news; once a signal has come or the reader has gone, only so long after it."""
        while True:
            left = None if self._shutdown_at is None else max(0.0, self._shutdown_at + grace - time.monotonic())
            news = self._wakeup.wait(left)
            if news is None:
                return False
            if news in _SHUTDOWN_EVENTS and self._shutdown_at is None:
                self._shutdown_at = time.monotonic()
            if news in wanted:
                return True

    def _read_job(self) -> Job | None:
        """The next tool call; whatever is said before it is dealt with here, by whoever has the turn."""
        for line in self._reader:
            if self._is_stopping:
                return None
            job = self._handle_line(line)
            if job is not None:
                return job
        self._wakeup.put(INPUT_ENDED)
        return None

    def _handle_line(self, line: bytes | None) -> Job | None:
        said = self._pipeline.parse_line(line)
        if isinstance(said, Request) and self._pending.has_id(said.id):
            said = message.id_in_use(said.id)
        answer, call, cancelled = self._decide_action(said)
        if answer is not None:
            self._writer.send(answer)
        if isinstance(said, Request) and said.method == "tools/list":
            self._app.start()
        self._pending.suppress_answer(cancelled)
        return None if call is None else self._admit_call(call)

    def _admit_call(self, incoming: Incoming) -> Job:
        """A call's job. Its time counts from here on, or from when the house is there."""
        entry = self._pending.add(incoming)
        entry.job = Job(partial(self._make_call, entry))
        app = self._app.get_if_ready()
        if app is not None:
            self._stamp_call(app, entry)
        return entry.job._replace(quick=incoming.call.tool_name in QUICK_TOOLS and not entry.has_pending_session)

    def _stamp_call(self, app: AppProtocol, entry: PendingRequest) -> None:
        """Give a call its time, once, and have the clock watch it."""
        with self._stamp_lock:
            if entry.call is None:
                entry.call = app.stamp(to_call_request(entry.incoming.call))
                self._deadlines.watch(entry)

    def _decide_action(self, said: InvalidMessage | Notification | Request) -> TransportAction:
        """What is to be done; should that fail, whoever asked is told before the failure is."""
        step: TransportAction | None = None
        try:
            step = self._pipeline.next_action(said)
        finally:
            if step is None and not isinstance(said, Notification):
                self._writer.send(_internal_error(said.id))
        return step

    def _make_call(self, entry: PendingRequest) -> None:
        """Make the call and answer it, unless the clock answers first."""
        entry.wait_for_session()
        if not self._pending.claim(entry):
            return
        answer: bytes | None = b""
        try:
            answer = self._encode_answer(entry)
        finally:
            self._deadlines.unwatch(entry)
            if answer is None:
                self._workers.return_worker()
            else:
                self._send_answer(entry, answer or _internal_error(entry.request_id))

    def _encode_answer(self, entry: PendingRequest) -> bytes | None:
        app = self._app.get()
        if app is None:
            return _internal_error(entry.request_id, "The server could not start.")
        if entry.call is None:
            for waiting in self._pending.list_unanswered():  # all that were read before the house was there
                self._stamp_call(app, waiting)
        outcome = app.answer(entry.call)
        return None if outcome is None else entry.incoming.encode(outcome)

    def _handle_overdue(self, entry: PendingRequest) -> None:
        """Answer for a worker that takes too long, and put another in its place; or for a call that had none yet."""
        waits = self._pending.claim(entry)
        if waits and entry.job is not None:
            self._workers.cancel_job(entry.job)
        app = self._app.get_if_started()
        if app is not None and self._expire_call(app, entry, "timeout") and not waits:
            self._workers.replace_worker()

    def _expire_call(self, app: AppProtocol, entry: PendingRequest, cap: str) -> bool:
        """Answer for whoever makes the call, unless it can no longer be ended."""
        outcome = app.expire(entry.call, cap)
        if outcome is not None:
            self._send_answer(entry, entry.incoming.encode(outcome))
        return outcome is not None

    def _send_answer(self, entry: PendingRequest, answer: bytes) -> None:
        if self._pending.finish(entry):
            if not entry.hushed:
                self._writer.send(answer)
            self._pending.mark_sent(entry)

    def _end_calls(self) -> None:
        """Record and answer the calls that were given no more time; those that wait for a worker too."""
        app = self._app.get_if_started()
        if app is None:
            return
        for entry in self._pending.list_unanswered():
            self._stamp_call(app, entry)
            self._expire_call(app, entry, "shutdown")

    def _close_app(self) -> None:
        """Leave the house in order, and no half a line behind."""
        try:
            app = self._app.get_if_started()
            if app is not None:
                app.close()
        finally:
            self._writer.stop()
            self._wakeup.put(APP_CLOSED)


def _internal_error(request_id: RequestId | None, reason: str = "Kaiza itself failed.") -> bytes:
    return message.rejection(InvalidMessage(request_id, "INTERNAL_ERROR", reason))
