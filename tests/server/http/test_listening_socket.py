"""The bound on sockets that are accepted, those of incomplete handshakes included."""

import socket

import pytest

from kaiza.server.http import connection
from kaiza.server.http.connection import ListeningSocket


def test_sockets_beyond_the_bound_are_closed_until_another_one_is(monkeypatch):
    monkeypatch.setattr(connection, "MAX_SOCKETS", 2)
    with ListeningSocket(socket.create_server(("127.0.0.1", 0))) as listening:
        clients = [socket.create_connection(listening.getsockname()) for _ in range(4)]
        accepted = [listening.accept()[0] for _ in range(2)]
        for each in accepted:
            listening.end_handshake(each.fileno())
        with pytest.raises(ConnectionAbortedError):
            listening.accept()
        refused = clients[2].recv(1)
        accepted.pop().close()
        accepted.append(listening.accept()[0])
        accepted[-1].sendall(b"x")

        assert (refused, clients[3].recv(1)) == (b"", b"x")
        for each in (*clients, *accepted):
            each.close()


def test_the_oldest_handshake_makes_room(monkeypatch):
    monkeypatch.setattr(connection, "MAX_SOCKETS", 3)
    with ListeningSocket(socket.create_server(("127.0.0.1", 0))) as listening:
        clients = [socket.create_connection(listening.getsockname()) for _ in range(5)]
        accepted = [listening.accept()[0] for _ in range(3)]
        listening.end_handshake(accepted[0].fileno())
        accepted += [listening.accept()[0] for _ in range(2)]
        cut = [client.recv(1) for client in clients[1:3]]
        for each in (accepted[0], *accepted[3:]):
            each.sendall(b"x")

        assert cut == [b"", b""]
        assert [client.recv(1) for client in (clients[0], *clients[3:])] == [b"x"] * 3
        for each in (*clients, *accepted):
            each.close()
