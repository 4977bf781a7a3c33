"""Stdio transport: reads requests, runs calls on worker threads, and shuts down in order.

Every line gets its answer, and the process does not exit before the log is closed, unless the deadline below passes.
"""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from kaiza.server.call_queue import find_lane
from kaiza.server.pipeline import (
    AppProtocol,
    Exchange,
    Incoming,
    Pipeline,
    RunLoggerProtocol,
    TransportAction,
    to_call_request,
)
from kaiza.server.stdio.framing import LineReader, LineWriter
from kaiza.server.stdio.lazy_app import LazyApp
from kaiza.server.stdio.pending_requests import SESSION_OPENER, DeadlineWatcher, PendingRequest, PendingRequests
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
from kaiza.wire.outline import Outline

if TYPE_CHECKING:
    from kaiza.domain.call import Outcome

# Time limits of a shutdown, in seconds since a signal or the loss of the client. In all, less than two seconds: then a
# client that uses one of the MCP SDKs kills the process.
DRAIN_SECONDS: Final = 1.0
"""Until then calls may run on; those still running are answered with CAP_EXCEEDED."""

END_SECONDS: Final = 1.6
"""Until then the others are recorded, and changes past their intent, which cannot be ended, may run on."""

EXIT_SECONDS: Final = 1.9
"""Until then the log may be closed; then the process exits. Counted from the last answer if input just ended."""

_SHUTDOWN_EVENTS: Final = frozenset({OUTPUT_BROKEN, READER_GONE, *SIGNALS})
"""Events that start the time limits. The end of input does not: then every call may use its own time."""


class StdioTransport:
    """Server for one client on a pair of descriptors."""

    def __init__(
        self,
        incoming: int,
        outgoing: int,
        pipeline: Pipeline,
        make_app: Callable[[], AppProtocol],
        make_run_logger: Callable[[], RunLoggerProtocol] | None = None,
    ) -> None:
        self._wakeup = WakeupPipe()
        self._reader = LineReader(incoming, framing.MAX_LINE)
        self._writer = LineWriter(outgoing, partial(self._wakeup.put, OUTPUT_BROKEN))
        self._pipeline = pipeline
        self._app = LazyApp(make_app, partial(self._wakeup.put, BUILD_FAILED))
        self._make_run_logger = make_run_logger
        self._run_logger: RunLoggerProtocol | None = None
        self._run_logger_lock = threading.Lock()  # so that it is made once
        self._pending = PendingRequests(partial(self._wakeup.put, ALL_ANSWERED))
        self._deadlines = DeadlineWatcher(self._handle_overdue)
        self._workers = WorkerPool(self._read_job)
        self._stamp_lock = threading.Lock()  # so that a call is stamped once
        self._is_stopping = False
        self._shutdown_at: float | None = None
        self._wakeup.watch_reader(outgoing)

    def serve(self) -> bool:
        """Serve until end of input, a signal or the loss of the client; False if a thread is stuck at the end."""
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
        """The error that building the application raised, if any."""
        return self._app.failure()

    def _wait_for(self, events: set[bytes], grace: float) -> bool:
        """Wait for one of these events; False if `grace` seconds have passed since the shutdown began."""
        while True:
            left = None if self._shutdown_at is None else max(0.0, self._shutdown_at + grace - time.monotonic())
            event = self._wakeup.wait(left)
            if event is None:
                return False
            if event in _SHUTDOWN_EVENTS and self._shutdown_at is None:
                self._shutdown_at = time.monotonic()
            if event in events:
                return True

    def _read_job(self) -> Job | None:
        """Read up to the next tool call; the lines before it are answered here, in the reading thread."""
        self._pending.wait_for_room()
        for line in self._reader:
            if self._is_stopping:
                return None
            job = self._handle_line(line)
            if job is not None:
                return job
        self._wakeup.put(INPUT_ENDED)
        return None

    def _handle_line(self, line: bytes | Outline) -> Job | None:
        began = time.monotonic()
        parsed = self._pipeline.parse_line(line)
        if isinstance(parsed, Request) and self._pending.has_id(parsed.id):
            parsed = message.refuse_reused_id(parsed)
        answer, call, cancelled = self._decide_action(parsed)
        if answer is not None:
            self._writer.send(answer)
        if isinstance(parsed, Request) and parsed.method == "tools/list":
            self._app.start()  # a client that lists the tools is about to call one
        self._pending.suppress_answer(cancelled)
        if isinstance(parsed, Notification):
            return None
        exchange = Exchange(parsed, len(line), began)
        if call is not None:
            return self._admit_call(call, exchange)
        self._log_exchange(exchange._replace(line=line, answer=answer or b""))
        return None

    def _log_exchange(self, exchange: Exchange) -> None:
        """Log an answered request. The run log is imported with the first one."""
        if self._make_run_logger is None:
            return
        with self._run_logger_lock:
            self._run_logger = self._run_logger or self._make_run_logger()
        self._run_logger.log_exchange(exchange)

    def _admit_call(self, incoming: Incoming, exchange: Exchange) -> Job:
        """Register a call and create its job. Its deadline counts from here, or from when the application is built."""
        entry = self._pending.add(incoming, exchange)
        lane = find_lane(incoming.call.tool_name)
        entry.job = Job(partial(self._run_call, entry), lane, entry.awaits_session)
        app = self._app.get_if_ready()
        if app is not None:
            self._stamp_call(app, entry)
        return entry.job

    def _stamp_call(self, app: AppProtocol, entry: PendingRequest) -> None:
        """Stamp a call and watch its deadline, once."""
        with self._stamp_lock:
            if entry.call is None:
                report_progress = partial(self._report_progress, entry)
                entry.call = app.stamp(to_call_request(entry.incoming.call, report_progress))
                self._deadlines.watch(entry)

    def _report_progress(self, entry: PendingRequest, done: int, total: int | None) -> None:
        line = entry.incoming.encode_progress(done, total)
        if line is not None and not (entry.is_finished or entry.is_suppressed):
            self._writer.offer(line)

    def _decide_action(self, parsed: InvalidMessage | Notification | Request) -> TransportAction:
        action: TransportAction | None = None
        try:
            action = self._pipeline.next_action(parsed)
        finally:
            # A bug must not leave a request without an answer. The exception goes on, and is printed.
            if action is None and not isinstance(parsed, Notification):
                self._writer.send(_internal_error(parsed.id))
        return action

    def _run_call(self, entry: PendingRequest) -> None:
        """Run a call and answer it, unless it has expired."""
        if not self._pending.claim(entry):
            return
        answer: bytes | None = b""
        try:
            answer = self._encode_answer(entry)
        finally:
            self._deadlines.unwatch(entry)
            if answer is not None:
                self._send_answer(entry, answer or _internal_error(entry.request_id))

    def _encode_answer(self, entry: PendingRequest) -> bytes | None:
        """Run the call and return its answer as a line; None if its deadline was answered first."""
        app = self._app.get()
        if app is None:
            return _internal_error(entry.request_id, "The server could not start. Run kaiza doctor.")
        if entry.call is None:
            # All calls that were read before the application was built, so that those in the backlog expire, too.
            for unstamped in self._pending.list_unanswered():
                self._stamp_call(app, unstamped)
        outcome = app.answer(entry.call)
        if outcome is None:
            return None
        entry.outcome = outcome
        return entry.incoming.encode(outcome)

    def _handle_overdue(self, entry: PendingRequest) -> None:
        """Expire a call at its deadline, and replace the worker that is stuck in it, if any."""
        was_waiting = self._pending.claim(entry)
        if was_waiting and entry.job is not None:
            self._workers.cancel_job(entry.job)
        app = self._app.get_if_started()
        outcome = app.expire(entry.call) if app is not None else None
        if outcome is not None:
            self._answer_expired(entry, outcome)
            if entry.job is not None:
                self._workers.release_stuck(entry.job)

    def _answer_expired(self, entry: PendingRequest, outcome: "Outcome") -> None:
        """Answer a call in place of its worker."""
        entry.outcome = outcome
        self._send_answer(entry, entry.incoming.encode(outcome))

    def _send_answer(self, entry: PendingRequest, answer: bytes) -> None:
        if self._pending.finish(entry):
            if not entry.is_suppressed:
                self._writer.send(answer)
            try:
                # Before the request counts as sent: the process may exit after that.
                self._log_exchange(
                    entry.exchange._replace(answer=answer, incoming=entry.incoming, outcome=entry.outcome)
                )
            finally:
                self._pending.mark_sent(entry)
                if entry.incoming.call.tool_name == SESSION_OPENER:
                    self._workers.release_held()

    def _end_calls(self) -> None:
        """Expire all calls at shutdown, including those in the backlog, so that each has a record."""
        app = self._app.get_if_started()
        if app is None:
            return
        expired = []
        for entry in self._pending.list_unanswered():
            self._stamp_call(app, entry)
            expired.append((entry, app.expire(entry.call, "shutdown")))
        # Only after the last record: a client that does not read must not keep the other calls from theirs.
        for entry, outcome in expired:
            if outcome is not None:
                self._answer_expired(entry, outcome)

    def _close_app(self) -> None:
        try:
            app = self._app.get_if_started()
            if app is not None:
                app.close()
        finally:
            self._writer.stop()  # the process may exit any moment now: no half-written line
            self._wakeup.put(APP_CLOSED)


def _internal_error(request_id: RequestId | None, reason: str = message.BUG_REASON) -> bytes:
    return message.rejection(InvalidMessage(request_id, "INTERNAL_ERROR", reason))
