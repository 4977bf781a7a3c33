"""Stdio transport: reads requests, runs calls on worker threads, and shuts down in order.

Every line gets its answer, and the process does not exit before the log is closed, unless the deadline below passes.
"""

import threading
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Final

from kaiza.server.call_runner import CallAnswer, CallRunner, ServedCall, internal_error
from kaiza.server.pipeline import (
    Exchange,
    Incoming,
    Pipeline,
    TransportAction,
)
from kaiza.server.stdio.framing import LineReader, LineWriter
from kaiza.server.stdio.lazy_app import LazyApp
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
from kaiza.wire import framing, message
from kaiza.wire.message import InvalidMessage, Notification, Request, RequestId
from kaiza.wire.numbers import WideNumber
from kaiza.wire.outline import Outline

if TYPE_CHECKING:
    from kaiza.app import App
    from kaiza.server.run_logger import RunLogger

# Time limits of a shutdown, in seconds since a signal or the loss of the client. In all, less than two seconds: then a
# client that uses one of the MCP SDKs kills the process.
DRAIN_SECONDS: Final = 1.0
"""Until then calls may run on; those still running are answered with CAP_EXCEEDED."""

END_SECONDS: Final = 1.6
"""Until then the others are recorded, and changes past their intent, which cannot be ended, may run on."""

EXIT_SECONDS: Final = 1.9
"""Until then the log may be closed; then the process exits. Counted from the last answer if input just ended."""

MAX_UNSENT: Final = 256
"""Calls that wait, run, or have an answer that the client has not read. With so many, nothing more is read."""

MAX_UNSENT_BYTES: Final = 32 << 20
"""The same in bytes of requests; the last of them may go beyond it."""

_SESSION_OPENER: Final = "begin_session"
_SESSIONLESS_TOOL: Final = "server_info"
_SHUTDOWN_EVENTS: Final = frozenset({OUTPUT_BROKEN, READER_GONE, *SIGNALS})
"""Events that start the time limits. The end of input does not: then every call may use its own time."""


class StdioTransport:
    """Server for one client on a pair of descriptors."""

    def __init__(
        self,
        incoming: int,
        outgoing: int,
        pipeline: Pipeline,
        make_app: "Callable[[], App]",
        make_run_logger: "Callable[[], RunLogger] | None" = None,
    ) -> None:
        self._wakeup = WakeupPipe()
        self._reader = LineReader(incoming, framing.MAX_LINE)
        self._writer = LineWriter(outgoing, partial(self._wakeup.put, OUTPUT_BROKEN))
        self._pipeline = pipeline
        self._app = LazyApp(make_app, self._start_calls)
        self._calls = CallRunner()
        self._call_by_id: dict[tuple[bool, RequestId], ServedCall] = {}
        """The unanswered call that an id belongs to."""
        self._session_opener: ServedCall | None = None
        """The last call of `begin_session`."""
        self._make_run_logger = make_run_logger
        self._run_logger: RunLogger | None = None
        self._run_logger_lock = threading.Lock()  # so that it is made once
        self._is_stopping = False
        self._shutdown_at: float | None = None
        self._wakeup.watch_reader(outgoing)

    def serve(self) -> bool:
        """Serve until end of input, a signal or the loss of the client; False if a thread is stuck at the end."""
        self._wakeup.listen_to_signals()
        self._start_reader()
        self._wait_for({INPUT_ENDED, BUILD_FAILED, *_SHUTDOWN_EVENTS}, DRAIN_SECONDS)
        self._is_stopping = True
        self._calls.drain(partial(self._wakeup.put, ALL_ANSWERED))
        if not self._wait_for({ALL_ANSWERED}, DRAIN_SECONDS):
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

    def _start_reader(self) -> None:
        threading.Thread(target=self._read_lines, name="kaiza-read", daemon=True).start()

    def _read_lines(self) -> None:
        """Read to the end of input. Calls run on other threads, all other requests are answered here."""
        is_finished = False
        try:
            for line in self._reader:
                if self._is_stopping:
                    break
                self._handle_line(line)
                # Otherwise a client that reads no answers could fill the memory.
                self._calls.wait_for_room(_has_room)
            is_finished = True
            self._wakeup.put(INPUT_ENDED)
        finally:
            if not is_finished:  # a bug ended the thread; its traceback is printed, and another reads on
                self._start_reader()

    def _handle_line(self, line: bytes | Outline) -> None:
        began = time.monotonic()
        parsed = self._pipeline.parse_line(line)
        if isinstance(parsed, Request) and _id_key(parsed.id) in self._call_by_id:
            parsed = message.refuse_reused_id(parsed)
        answer, call, cancelled = self._decide_action(parsed)
        if answer is not None:
            self._writer.send(answer)
        if isinstance(parsed, Notification):
            self._suppress_answer(cancelled)
            return
        exchange = Exchange(parsed, len(line), began)
        if call is not None:
            self._submit_call(call, exchange)
            return
        if isinstance(parsed, Request) and parsed.method == "tools/list":
            self._app.start()  # a client that lists the tools is about to call one
        self._log_exchange(exchange._replace(line=line, answer=answer or b""))

    def _log_exchange(self, exchange: Exchange) -> None:
        """Log an answered request. The run log is imported with the first one."""
        if self._make_run_logger is None:
            return
        with self._run_logger_lock:
            self._run_logger = self._run_logger or self._make_run_logger()
        self._run_logger.log_exchange(exchange)

    def _submit_call(self, incoming: Incoming, exchange: Exchange) -> None:
        """Run a call. Its deadline counts from here, or from when the application is built."""
        call = ServedCall(incoming, exchange.size, partial(self._send_answer, exchange))
        call.report_progress = partial(self._report_progress, call)
        # An id that is pending goes on belonging to the call that has it.
        self._call_by_id.setdefault(_id_key(incoming.request_id), call)
        # A client may send `begin_session` and the next calls in one write.
        opener = None if incoming.call.tool_name == _SESSIONLESS_TOOL else self._session_opener
        if incoming.call.tool_name == _SESSION_OPENER:
            self._session_opener = call
        self._calls.submit(call, after=opener)
        self._app.start()

    def _suppress_answer(self, request_id: object) -> None:
        """Suppress the answer of a cancelled call."""
        if isinstance(request_id, str | int | float) and not isinstance(request_id, bool):
            call = self._call_by_id.get(_id_key(request_id))
            if call is not None:
                call.is_suppressed = True

    def _report_progress(self, call: ServedCall, done: int, total: int | None) -> None:
        line = call.incoming.encode_progress(done, total)
        if line is not None and not (call.is_answered or call.is_suppressed):
            self._writer.offer(line)

    def _send_answer(self, exchange: Exchange, call: ServedCall, answer: CallAnswer) -> None:
        # Before the answer: a client may use the id again as soon as it has that.
        key = _id_key(call.incoming.request_id)
        if self._call_by_id.get(key) is call:
            del self._call_by_id[key]
        if not call.is_suppressed:
            self._writer.send(answer.line)
        self._log_exchange(exchange._replace(answer=answer.line, incoming=call.incoming, outcome=answer.outcome))

    def _decide_action(self, parsed: InvalidMessage | Notification | Request) -> TransportAction:
        action: TransportAction | None = None
        try:
            action = self._pipeline.next_action(parsed)
        finally:
            # A bug must not leave a request without an answer. The exception goes on, and is printed.
            if action is None and not isinstance(parsed, Notification):
                self._writer.send(internal_error(parsed.id))
        return action

    def _start_calls(self, app: "App | None") -> None:
        self._calls.start(app)
        if app is None:
            self._wakeup.put(BUILD_FAILED)

    def _end_calls(self) -> None:
        self._app.wait()  # calls that were read before it is built have a record, too
        self._calls.end_calls()

    def _close_app(self) -> None:
        try:
            app = self._app.wait()
            if app is not None:
                app.close()
        finally:
            self._writer.stop()  # the process may exit any moment now: no half-written line
            self._wakeup.put(APP_CLOSED)


def _has_room(calls: Collection[ServedCall]) -> bool:
    """Whether another call may be read beside those whose answer is not sent."""
    return len(calls) < MAX_UNSENT and sum(call.size for call in calls) < MAX_UNSENT_BYTES


def _id_key(request_id: RequestId) -> tuple[bool, RequestId]:
    # 1 and 1.0 are equal and collide, as they must: a client could not tell their answers apart.
    # Infinities are equal, too, but their digits are not.
    return isinstance(request_id, str), request_id.text if isinstance(request_id, WideNumber) else request_id
