"""HTTP connections with limits on time, number and pieces, which uvicorn and h11 lack."""

import asyncio
import socket
from asyncio import TimerHandle
from collections.abc import Callable
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# Time limits in seconds. Then the connection is cut.
HANDSHAKE_SECONDS: Final = 5.0
"""For opening TLS, and for closing it."""

HEAD_SECONDS: Final = 10.0
"""For a whole head, from its first byte."""

BODY_SECONDS: Final = 10.0
"""For the body, from the end of the head."""

SEND_SECONDS: Final = 30.0
"""For an answer that the client does not read, and for the end of the connection after it."""

KEEP_ALIVE_SECONDS: Final = 5
"""For the next request."""

MAX_CONNECTIONS: Final = 320
"""More than there can be calls in flight without tokens, so that other requests are answered then."""

MAX_SOCKETS: Final = 512
"""Connections and TLS handshakes that are open at a time. More than MAX_CONNECTIONS, so that one is always a handshake.
"""

MIN_PIECE_BYTES: Final = 64
"""Average size of a body's pieces, after the first FREE_PIECES."""

FREE_PIECES: Final = 1024

PIECE_BYTES: Final = 1 << 14
"""Bytes that are given to the parser at a time: as many as an incomplete head may have."""

_TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 47\r\n\r\n"
    b"Too many connections. Close some and try again."
)


class BoundedConnection(H11Protocol):
    """One connection, cut when the client is too slow in sending a request or in reading its answer."""

    def __init__(
        self, *arguments: Any, on_made: Callable[[int], None], on_lost: Callable[[], None], **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.conn = RequestParser()
        self._on_made = on_made
        self._on_lost = on_lost
        self._receiving: object = None
        """The part of the request that is being received; None while the server's answer is awaited."""
        self._receive_timer: TimerHandle | None = None
        """Cuts the connection when its request is late; None while none is awaited."""
        self._send_timer: TimerHandle | None = None
        """Cuts the connection when its answer is not read; None while none waits for that."""
        self._waits_since = 0.0
        """When the later of these timers was started."""
        self._has_ended = False
        """The client sends no more, but may be waiting for its answers."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin with the head of the first request, or refuse the connection."""
        super().connection_made(transport)
        self._on_made(transport.get_extra_info("socket").fileno())
        # asyncio does this only for sockets made with IPPROTO_TCP. Without it, the body of an answer waits 40 ms until
        # the client acknowledges its head.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # So that `pause_writing` is called as soon as the client does not read.
        transport.set_write_buffer_limits(high=1, low=0)
        if len(self.connections) > MAX_CONNECTIONS and not self._cut_slowest():
            transport.write(_TOO_MANY)
            transport.close()
        self._watch_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        super().connection_lost(exc)
        for timer in (self._receive_timer, self._send_timer):
            if timer is not None:
                timer.cancel()
        self._on_lost()

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        # The parser bounds only a head that is incomplete, so that one in a single large piece would pass.
        for start in range(0, len(data), PIECE_BYTES):
            if not self.transport.is_closing():
                super().data_received(data[start : start + PIECE_BYTES])
        self._watch_request()

    def eof_received(self) -> bool:  # type: ignore[override]  # as in asyncio
        """Keep the connection until all that was requested is answered; False to close it at once."""
        # TLS cannot be closed on one side only.
        self._has_ended = self._is_answering() and self.transport.get_extra_info("sslcontext") is None
        return self._has_ended

    def on_response_complete(self) -> None:
        """Continue with the next request, a part of which may have been received already."""
        super().on_response_complete()
        self._watch_request()
        if self._has_ended and not self._is_answering():
            self.transport.close()

    def shutdown(self) -> None:
        """Close the connection after the answer in progress, if any."""
        if not self.transport.is_closing():
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request, or cut the connection if an answer has begun already."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        """Give the client time to read."""
        super().pause_writing()
        self._send_timer = self._start_timer(SEND_SECONDS)

    def resume_writing(self) -> None:
        """Note that the client has read everything."""
        super().resume_writing()
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def waits_since(self) -> float | None:
        """Since when the server has waited for this client; None while it does not."""
        return None if self._receive_timer is None and self._send_timer is None else self._waits_since

    def _start_timer(self, seconds: float) -> TimerHandle:
        """Cut the connection in so many seconds."""
        self._waits_since = self.loop.time()
        return self.loop.call_later(seconds, self.transport.abort)

    def _is_answering(self) -> bool:
        """Whether a whole request has been received, and not answered."""
        return self.conn.their_state is h11.DONE and self.cycle is not None and not self.cycle.response_complete

    def _cut_slowest(self) -> bool:
        """Cut the connection whose client the server waits for longest; False if it waits for none.

        Otherwise connections that send nothing, which need no token, could keep other clients out.
        """
        waiting = {
            connection: since
            for connection in self.connections
            if isinstance(connection, BoundedConnection) and (since := connection.waits_since()) is not None
        }
        if waiting:
            slowest = min(waiting, key=waiting.__getitem__)
            self.connections.discard(slowest)
            slowest.transport.abort()
        return bool(waiting)

    def _watch_request(self) -> None:
        """Start the timer when another part of a request begins or the end is awaited, and stop it while neither is."""
        seconds = {"closing": SEND_SECONDS, h11.IDLE: HEAD_SECONDS, h11.SEND_BODY: BODY_SECONDS}
        state = "closing" if self.transport.is_closing() else self.conn.their_state
        receiving = (state, self.cycle) if state in seconds else None
        if receiving == self._receiving:
            return
        if self._receive_timer is not None:
            self._receive_timer.cancel()
        self._receiving, self._receive_timer = receiving, None
        if receiving is not None:
            self._receive_timer = self._start_timer(seconds[state])


class RequestParser(h11.Connection):
    """Parser that refuses requests whose end is ambiguous, and bodies in tiny pieces."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, PIECE_BYTES)
        self._piece_count = 0
        self._body_bytes = 0

    def next_event(self) -> Any:
        """The next part of a request. RemoteProtocolError if the request is refused."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._piece_count = self._body_bytes = 0
            # A proxy in front of this server may see the end of such a body elsewhere (request smuggling).
            names = {name for name, _ in event.headers}
            if b"transfer-encoding" in names and (b"content-length" in names or event.http_version < b"1.1"):
                raise h11.RemoteProtocolError("the end of the body is ambiguous")
        elif isinstance(event, h11.Data):
            # All received chunks are parsed at once: if each had one byte, this would block the server for seconds.
            self._piece_count += 1
            self._body_bytes += len(event.data)
            if self._piece_count > FREE_PIECES + self._body_bytes // MIN_PIECE_BYTES:
                raise h11.RemoteProtocolError("the body comes in tiny pieces")
        return event


class ListeningSocket(socket.socket):
    """Listening socket, made from a bound one. If it has too many connections, the oldest handshake makes room."""

    def __init__(self, bound: socket.socket) -> None:
        super().__init__(fileno=bound.detach())
        self._accepted: set[AcceptedSocket] = set()
        self._handshakes: dict[int, AcceptedSocket] = {}
        """Connections that can send no request yet, by descriptor, oldest first."""

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection; ConnectionAbortedError, which the event loop ignores, if there are too many."""
        connection, address = super().accept()
        if len(self._accepted) >= MAX_SOCKETS:
            # Otherwise connections that send nothing, which need no token, could keep other clients out.
            oldest = next(iter(self._handshakes.values()), None)
            if oldest is None:
                connection.close()
                raise ConnectionAbortedError
            self._forget(oldest)
            oldest.end()
        accepted = AcceptedSocket(connection, self._forget)
        self._accepted.add(accepted)
        self._handshakes[accepted.fileno()] = accepted
        return accepted, address

    def end_handshake(self, descriptor: int) -> None:
        """Note that requests can be sent over a connection from now on."""
        self._handshakes.pop(descriptor, None)

    def _forget(self, accepted: "AcceptedSocket") -> None:
        self._accepted.discard(accepted)
        if self._handshakes.get(accepted.fileno()) is accepted:
            self._handshakes.pop(accepted.fileno())


class AcceptedSocket(socket.socket):
    """Accepted connection that says when it is closed."""

    def __init__(self, connection: socket.socket, on_close: Callable[["AcceptedSocket"], None]) -> None:
        super().__init__(fileno=connection.detach())
        self._on_close = on_close

    def close(self) -> None:
        """Close the connection."""
        self._on_close(self)
        super().close()

    def end(self) -> None:
        """End the connection. The event loop uses the descriptor, and closes it when it notices the end."""
        try:
            self.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the client has ended it already
