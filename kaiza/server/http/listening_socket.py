"""Listening socket with a limit on open connections, so that incomplete TLS handshakes do not use up descriptors."""

import socket
from collections.abc import Callable
from typing import Any, Final

MAX_SOCKETS: Final = 512
"""Connections and handshakes that are open at a time. More than MAX_CONNECTIONS, so that one is always a handshake."""


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
        if len(self._accepted) >= MAX_SOCKETS and not self._cut_oldest_handshake():
            connection.close()
            raise ConnectionAbortedError
        accepted = AcceptedSocket(connection, self._forget)
        self._accepted.add(accepted)
        self._handshakes[accepted.fileno()] = accepted
        return accepted, address

    def end_handshake(self, descriptor: int) -> None:
        """Note that requests can be sent over a connection from now on."""
        self._handshakes.pop(descriptor, None)

    def _cut_oldest_handshake(self) -> bool:
        """Cut the connection whose handshake is awaited for the longest time; False if none is.

        Otherwise connections that send nothing, which need no token, could keep other clients out.
        """
        oldest = next(iter(self._handshakes.values()), None)
        if oldest is not None:
            self._forget(oldest)
            oldest.end()
        return oldest is not None

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
