"""Reads bodies of requests up to a limit, and discards the rest before a refusal, so that clients read the answer."""

from typing import Final

from anyio import move_on_after
from starlette.datastructures import Headers
from starlette.requests import Request as HttpRequest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kaiza.server.http.admission import MAX_BODY, too_large

MAX_DROPPED: Final = 16 * MAX_BODY
"""Bytes that are read of a refused body; then the connection is closed."""

PAUSE_SECONDS: Final = 0.5
"""For the next piece of a refused body. A client that sends none may be waiting for the answer, and gets it."""

LINGER_SECONDS: Final = 2.0
"""The same after that answer. Then the connection is closed."""


async def read_body(request: HttpRequest) -> bytes:
    """Read the whole body; refuse one that is longer than MAX_BODY."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise too_large()
    return bytes(body)


class BodyDrain:
    """ASGI middleware: reads what is left of the body before the answer begins, or after it if the client waits for it.

    A client that is still sending when the connection closes would see an error instead of the answer.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        rest = _Rest(receive, is_held_back=Headers(scope=scope).get("expect", "").lower() == "100-continue")

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
        """Read to the end; False if the client pauses, or sends more than MAX_DROPPED bytes."""
        is_sending = not self._is_held_back
        while is_sending and not self.is_read and self._dropped <= MAX_DROPPED:
            with move_on_after(pause_seconds) as pause:
                self._dropped += len((await self.receive()).get("body", b""))
            is_sending = not pause.cancelled_caught
        return self.is_read
