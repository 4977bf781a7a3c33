"""Listening socket with a limit on open connections, so that incomplete TLS handshakes do not use up descriptors."""

import socket
from typing import Any, Final

MAX_SOCKETS: Final = 512
"""Connections and handshakes that are open at a time. More are closed at once: nothing can be sent before TLS."""


class ListeningSocket(socket.socket):
    """Listening socket, made from a bound one."""

    def __init__(self, bound: socket.socket) -> None:
        super().__init__(fileno=bound.detach())
        self._accepted: set[AcceptedSocket] = set()

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection; ConnectionAbortedError, which the event loop ignores, if there are too many."""
        connection, address = super().accept()
        if len(self._accepted) >= MAX_SOCKETS:
            connection.close()
            raise ConnectionAbortedError
        return AcceptedSocket(connection, self._accepted), address


class AcceptedSocket(socket.socket):
    """Accepted connection, counted until it is closed."""

    def __init__(self, connection: socket.socket, accepted: "set[AcceptedSocket]") -> None:
        super().__init__(fileno=connection.detach())
        self._accepted = accepted
        accepted.add(self)

    def close(self) -> None:
        """Close the connection."""
        self._accepted.discard(self)
        super().close()
