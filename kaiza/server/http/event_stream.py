"""Server-sent events: a response becomes a stream only if progress is reported before the answer."""

import asyncio
from asyncio import Task
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse

from kaiza.server.call_runner import CallAnswer
from kaiza.server.pipeline import Incoming

MAX_WAITING = 16
"""Lines that wait for a client that does not read. The oldest of more are dropped; the answer never is."""

_ACCEPTED = ("text/event-stream", "text/*", "*/*")


def accepts_events(headers: Headers) -> bool:
    """Whether the client accepts a stream of events; one that sends no `Accept` header does."""
    accepted = headers.get("accept", "*/*")
    return any(kind in accepted for kind in _ACCEPTED)


class EventStream:
    """Response of one call, with lines that any thread may send before the answer."""

    def __init__(self, incoming: Incoming) -> None:
        self._incoming = incoming
        self._loop = asyncio.get_running_loop()
        self._lines: deque[bytes] = deque(maxlen=MAX_WAITING)
        self._changed = asyncio.Event()
        """Set when there is a line or the answer."""

    def report_progress(self, done: int, total: int | None) -> None:
        """Send the client how many items of how many are processed."""
        line = self._incoming.encode_progress(done, total)
        if line is not None:
            self.send(line)

    def send(self, line: bytes) -> None:
        """Send the client a line before the answer."""

        def add_line() -> None:
            self._lines.append(line)
            self._changed.set()

        self._loop.call_soon_threadsafe(add_line)

    async def respond(
        self, run: Coroutine[Any, Any, CallAnswer], to_response: Callable[[CallAnswer], Response]
    ) -> Response:
        """The response of the call: plain if the answer comes first, otherwise events of which it is the last."""
        # A separate task, which continues when the client disconnects and the response is cancelled.
        work = self._loop.create_task(run)
        work.add_done_callback(lambda _: self._changed.set())
        first = await self._next_line(work)
        if first is None:
            return to_response(await work)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._events(first, work), media_type="text/event-stream", headers=headers)

    async def _next_line(self, work: "Task[CallAnswer]") -> bytes | None:
        """The next line before the answer; None if the answer is next."""
        while not self._lines and not work.done():
            self._changed.clear()
            await self._changed.wait()
        return self._lines.popleft() if self._lines else None

    async def _events(self, line: bytes | None, work: "Task[CallAnswer]") -> AsyncIterator[bytes]:
        while line is not None:
            yield _to_event(line)
            line = await self._next_line(work)
        yield _to_event((await work).line)


def _to_event(line: bytes) -> bytes:
    # The encoders write no line breaks, which would end the event.
    return b"event: message\ndata: %b\n\n" % line.rstrip(b"\n")
