"""The bound on sockets that are accepted, those of incomplete handshakes included."""

import socket

import pytest

from kaiza.server.http import listening_socket
from kaiza.server.http.listening_socket import ListeningSocket


def test_sockets_beyond_the_bound_are_closed_until_another_one_is(monkeypatch):
    monkeypatch.setattr(listening_socket, "MAX_SOCKETS", 2)
    with ListeningSocket(socket.create_server(("127.0.0.1", 0))) as listening:
        clients = [socket.create_connection(listening.getsockname()) for _ in range(4)]
        accepted = [listening.accept()[0] for _ in range(2)]
        with pytest.raises(ConnectionAbortedError):
            listening.accept()
        refused = clients[2].recv(1)
        accepted.pop().close()
        accepted.append(listening.accept()[0])
        accepted[-1].sendall(b"x")

        assert (refused, clients[3].recv(1)) == (b"", b"x")
        for each in (*clients, *accepted):
            each.close()
