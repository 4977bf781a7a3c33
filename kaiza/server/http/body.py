"""Reads bodies of requests up to a limit, and discards the rest before a refusal, so that clients read the answer."""

from typing import Final

from starlette.requests import Request as HttpRequest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kaiza.server.http.admission import MAX_BODY, too_large

MAX_DROPPED: Final = 16 * MAX_BODY
"""Bytes that are read of a refused body; then the connection is closed."""


async def read_body(request: HttpRequest) -> bytes:
    """Read the whole body; refuse one that is longer than MAX_BODY."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise too_large()
    return bytes(body)


class BodyDrain:
    """ASGI middleware: reads what is left of the body before the answer begins.

    A client that is still sending when the connection closes would see an error instead of the answer.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        rest = _Rest(receive)

        async def send_after_body(message: Message) -> None:
            if message["type"] == "http.response.start" and not await rest.drop():
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        await self._app(scope, rest.receive, send_after_body)


class _Rest:
    """The part of the body that has not been received yet."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._is_read = False

    async def receive(self) -> Message:
        message = await self._receive()
        self._is_read = not message.get("more_body")
        return message

    async def drop(self) -> bool:
        """Read to the end; False if more than MAX_DROPPED bytes follow."""
        dropped = 0
        while not self._is_read and dropped <= MAX_DROPPED:
            dropped += len((await self.receive()).get("body", b""))
        return self._is_read
