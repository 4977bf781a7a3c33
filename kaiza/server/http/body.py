"""Reads and parses bodies of requests up to a limit.

Discards the rest before a refusal, so that clients read the answer.
"""

from collections import Counter, defaultdict
from typing import Final

from anyio import CapacityLimiter, move_on_after, to_thread
from starlette.datastructures import Headers
from starlette.requests import Request as HttpRequest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kaiza.domain.call import Principal
from kaiza.server.http.admission import MAX_BODY, MAX_READ, busy, is_held_back, too_large
from kaiza.server.pipeline import ParsedLine, Pipeline
from kaiza.wire.outline import Outline

MAX_HELD: Final = 16 * MAX_BODY
"""Bytes of all bodies that are being received or parsed. A further one that is not small is refused for now."""

MAX_HELD_OF_TOKEN: Final = 12 * MAX_BODY
"""The same of one token, which leaves room for others."""

SMALL_BYTES: Final = 1 << 16
"""A body up to this length is always received: connections bound the number of them."""

LONG_BYTES: Final = 1 << 11
"""A longer body is parsed on a thread: the worst one of this length takes some milliseconds."""

PAUSE_SECONDS: Final = 0.5
"""For the next piece of a refused body. A client that sends none may be waiting for the answer, and gets it."""

LINGER_SECONDS: Final = 2.0
"""The same after that answer. Then the connection is closed."""


class BodyReader:
    """Reads and parses bodies. Used on the event loop only; what takes long runs on threads."""

    def __init__(self) -> None:
        self._held_bytes: Counter[Principal | None] = Counter()
        # One at a time for each token: a token's long bodies keep only its own waiting.
        self._parsers: defaultdict[Principal | None, CapacityLimiter] = defaultdict(lambda: CapacityLimiter(1))

    async def read(self, request: HttpRequest, principal: Principal | None) -> bytes | Outline:
        """Read the whole body. Of one that is longer than MAX_BODY only an outline is kept."""
        body = bytearray()
        outline: Outline | None = None
        try:
            async for chunk in request.stream():
                body += chunk
                self._held_bytes[principal] += len(chunk)
                if len(body) > SMALL_BYTES and not self._has_room(principal):
                    raise busy("Too many long requests are being received.")
                if len(body) > (MAX_BODY if outline is None else SMALL_BYTES):
                    outline = await self._outline(body, outline, principal)
            return bytes(body) if outline is None else await self._outline(body, outline, principal)
        finally:
            self._held_bytes[principal] -= len(body)

    def _has_room(self, principal: Principal | None) -> bool:
        """Whether the bodies of all callers, and those of this one, are within their limits."""
        limit = MAX_HELD if principal is None else MAX_HELD_OF_TOKEN
        return self._held_bytes.total() <= MAX_HELD and self._held_bytes[principal] <= limit

    async def _outline(self, body: bytearray, outline: Outline | None, principal: Principal | None) -> Outline:
        """Move what has been received into the outline."""
        outline = Outline() if outline is None else outline
        await to_thread.run_sync(outline.feed, body, limiter=self._parsers[principal])
        self._held_bytes[principal] -= len(body)
        body.clear()
        if len(outline) > MAX_READ:
            raise too_large()
        return outline

    async def parse(self, body: bytes | Outline, pipeline: Pipeline, principal: Principal | None) -> ParsedLine:
        """Parse a body."""
        if isinstance(body, Outline) or len(body) <= LONG_BYTES:
            return pipeline.parse_line(body)
        self._held_bytes[principal] += len(body)
        try:
            return await to_thread.run_sync(pipeline.parse_line, body, limiter=self._parsers[principal])
        finally:
            self._held_bytes[principal] -= len(body)


class BodyDrain:
    """ASGI middleware: reads what is left of the body before the answer begins, or after it if the client waits for it.

    A client that is still sending when the connection closes would see an error instead of the answer.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        rest = _Rest(receive, is_held_back=is_held_back(Headers(scope=scope)))

        async def send_after_body(message: Message) -> None:
            if message["type"] == "http.response.start" and not await rest.drop(PAUSE_SECONDS):
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            elif not rest.is_read and not message.get("more_body"):
                await send({**message, "more_body": True})
                await rest.drop(LINGER_SECONDS)
                message = {"type": message["type"], "body": b""}
            await send(message)

        await self._app(scope, rest.receive, send_after_body)


class _Rest:
    """The part of the body that has not been received yet."""

    def __init__(self, receive: Receive, *, is_held_back: bool) -> None:
        self._receive = receive
        self._is_held_back = is_held_back
        """The client sends no body before it is asked to."""
        self._dropped = 0
        self.is_read = False

    async def receive(self) -> Message:
        self._is_held_back = False
        message = await self._receive()
        self.is_read = not message.get("more_body")
        return message

    async def drop(self, pause_seconds: float) -> bool:
        """Read to the end; False if the client pauses, or sends more than MAX_READ bytes."""
        is_sending = not self._is_held_back
        while is_sending and not self.is_read and self._dropped <= MAX_READ:
            with move_on_after(pause_seconds) as pause:
                self._dropped += len((await self.receive()).get("body", b""))
            is_sending = not pause.cancelled_caught
        return self.is_read
