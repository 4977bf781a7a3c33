"""Hostile connections: malformed and ambiguous requests, slow ones, and too many of them."""

import asyncio
import json
import select
import socket
from contextlib import ExitStack, suppress
from functools import partial

import pytest
from doors import PATIENCE, call, until
from http_doors import head, read_answer
from uvicorn.config import Config
from uvicorn.server import ServerState

from kaiza.server.http.connection import BoundedConnection

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
ECHO = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}'
START = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(PING)


def receive_all(client):
    """Everything until the server closes."""
    received = b""
    try:
        while piece := client.recv(65536):
            received += piece
    except ConnectionResetError:
        return received
    return received


MALFORMED = [
    LENGTH + b"Content-Length: 5\r\n\r\n" + PING + ECHO,
    b"Content-Length: 40, 5\r\n\r\n" + PING + ECHO,
    b"Content-Length: +40\r\n\r\n" + PING,
    b"Content-Length: -1\r\n\r\n" + PING,
    b"Content-Length: 0x28\r\n\r\n" + PING,
    b"Content-Length: 4 0\r\n\r\n" + PING,
    LENGTH + b"Transfer-Encoding: chunked\r\n\r\n28\r\n" + PING + b"\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n28\r\n" + PING + b"\r\n0\r\n\r\n",
    b"Transfer-Encoding: gzip\r\n\r\n" + PING,
    b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"X-A: b\r\n\x00: c\r\n" + LENGTH + b"\r\n" + PING,
    b"X-A: b\x00\r\n" + LENGTH + b"\r\n" + PING,
    b"X-A: b\rX-B: c\r\n" + LENGTH + b"\r\n" + PING,
    b": no name\r\n" + LENGTH + b"\r\n" + PING,
    b"no colon\r\n" + LENGTH + b"\r\n" + PING,
    b"X-Long: " + b"x" * 70_000 + b"\r\n" + LENGTH + b"\r\n" + PING,
    b"X: y\r\n" * 20_000 + LENGTH + b"\r\n" + PING,
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + PING,
    b"Transfer-Encoding: chunked\r\n\r\n-1\r\n" + PING,
    b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 70_000,
    b"Transfer-Encoding: chunked\r\n\r\n28\r\n" + PING + b"XX\r\n0\r\n\r\n",
]


def test_a_malformed_request_is_refused_and_its_connection_closed(door):
    for rest in MALFORMED:
        with door.connect() as client:
            client.sendall(START + rest)
            received = receive_all(client)

        assert received.count(b"HTTP/1.1 ") == 1, rest[:100]
        assert received.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501")), rest[:100]
    assert door.records() == []
    assert door.post("/mcp", PING).status == 200


def test_a_folded_header_is_not_two_headers(door):
    folded = START.replace(b"Host: localhost", b"Host: evil\r\n localhost")
    with door.connect() as client:
        client.sendall(folded + b"Connection: close\r\n" + LENGTH + b"\r\n" + PING)
        received = receive_all(client)

    assert received.startswith((b"HTTP/1.1 421", b"HTTP/1.1 400"))


@pytest.mark.parametrize("line", [b"GARBAGE\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00"])
def test_what_is_not_http_is_refused(door, line):
    with door.connect() as client:
        client.sendall(line + b"\r\n\r\n")
        received = receive_all(client)

    assert received.startswith(b"HTTP/1.1 400")


def test_a_request_to_switch_protocols_is_ignored_or_refused(door):
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    websocket = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n"

    for headers in (upgrade, websocket):
        assert door.exchange(START + headers + LENGTH + b"\r\n" + PING)[0] == 200
    assert door.exchange(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")[0] in (0, 400, 421)
    assert door.exchange(b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] in (400, 404, 405)


def test_pipelined_requests_are_answered_in_order(door):
    with door.connect() as client:
        first, last = START + LENGTH + b"\r\n" + PING, START + b"Connection: close\r\n"
        client.sendall(first * 20 + last + b"Content-Length: %d\r\n\r\n" % len(ECHO) + ECHO)
        received = receive_all(client)

    assert received.count(b"HTTP/1.1 200") == 21
    assert received.index(b'"id":2') > received.rindex(b'"id":1')


def test_chunks_are_refused_in_http_1_0_which_has_none(door):
    body = b"28\r\n" + PING + b"\r\n0\r\n\r\n"

    assert door.exchange(head(version="1.0", Transfer_Encoding="chunked") + body)[0] == 400
    assert door.exchange(head(path="/healthz", method="GET", Content_Length=4, Transfer_Encoding="chunked"))[0] == 400


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer sesame"}], ids=["no token", "token"])
def test_a_body_in_single_bytes_does_not_keep_the_server_busy(fake, headers):
    door = fake()
    with door.connect() as client:
        client.sendall(head(Transfer_Encoding="chunked", **headers) + b"1\r\n \r\n" * 3000)
        received = receive_all(client)

    assert received.startswith(b"HTTP/1.1 400")
    assert door.request("GET", "/healthz", headers={}).status == 200


def test_a_body_may_come_in_many_small_chunks(door):
    body = PING + b" " * (500_000 - len(PING))
    chunks = b"".join(b"64\r\n%b\r\n" % body[start : start + 100] for start in range(0, len(body), 100))

    assert door.exchange(head(Transfer_Encoding="chunked") + chunks + b"0\r\n\r\n")[0] == 200


def test_http_1_0_is_answered_and_closed(door):
    with door.connect() as client:
        client.sendall(head(version="1.0", Content_Length=len(PING)) + PING)
        received = receive_all(client)

    assert received.startswith(b"HTTP/1.1 200")


def test_a_body_is_asked_for_with_100_continue(door):
    with door.connect() as client:
        client.sendall(START + b"Expect: 100-continue\r\n" + LENGTH + b"\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 100")
        client.sendall(PING)

        assert read_answer(client)[0] == 200


def test_a_client_that_closes_its_side_after_its_requests_gets_their_answers(fake):
    door = fake("no-auth", "KEEP_ALIVE_SECONDS=1000", "HEAD_SECONDS=1000")
    with door.connect() as client:
        client.sendall((START + LENGTH + b"\r\n" + PING) * 2 + START + b"Content-Length: %d\r\n\r\n" % len(ECHO) + ECHO)
        client.shutdown(socket.SHUT_WR)
        received = receive_all(client)

    assert received.count(b"HTTP/1.1 200") == 3
    assert received.endswith(b"}\n")
    assert len(door.records()) == 1


def test_an_aborted_body_is_no_call(door):
    with door.connect() as client:
        client.sendall(START + b"Content-Length: 5000\r\n\r\n" + ECHO)
        client.shutdown(socket.SHUT_WR)
        receive_all(client)

    assert door.post("/mcp", PING).status == 200
    assert door.records() == []


@pytest.mark.parametrize(
    ("limit", "sent"),
    [
        ("HEAD_SECONDS", b""),
        ("HEAD_SECONDS", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: "),
        ("BODY_SECONDS", START + LENGTH + b"\r\n" + PING[:10]),
        ("BODY_SECONDS", START + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabc"),
        ("BODY_SECONDS", START + b"Origin: null\r\n" + LENGTH + b"\r\n" + PING[:10]),
        ("KEEP_ALIVE_SECONDS", START + LENGTH + b"\r\n" + PING),
        ("HEAD_SECONDS", START + LENGTH + b"\r\n" + PING + b"POST /mcp"),
    ],
)
def test_a_client_that_is_too_slow_is_cut_off(fake, limit, sent):
    shortened = f"{limit}=0.2" if limit != "KEEP_ALIVE_SECONDS" else f"{limit}=0"
    door = fake("no-auth", "KEEP_ALIVE_SECONDS=60", shortened)
    with door.connect() as client:
        client.sendall(sent)
        received = receive_all(client)

    assert received.count(b"HTTP/1.1 200") == sent.count(PING)


def send_until_cut(client, piece):
    """Send again and again until the server cuts the connection."""
    client.settimeout(PATIENCE)
    while True:
        client.sendall(piece)


def test_a_client_that_drips_bytes_is_cut_off(fake):
    door = fake("no-auth", "HEAD_SECONDS=0.2")
    with door.connect() as client:
        client.sendall(START)
        while not select.select([client], [], [], 0.01)[0]:
            client.sendall(b"X: y\r\n")

        assert receive_all(client) == b""


def test_a_client_that_does_not_read_its_answers_is_cut_off(fake):
    door = fake("no-auth", "SEND_SECONDS=0.2")
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"t":"%b"}}}'
    body %= b"x" * 500_000
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((door.host, door.port))
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            send_until_cut(client, START + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    assert door.post("/mcp", PING).status == 200


def test_connections_beyond_the_limit_are_refused_while_all_others_wait_for_an_answer(fake, fifo, tmp_path):
    door = fake("no-auth", "MAX_CONNECTIONS=4")
    with ExitStack() as stack:
        for number in range(4):
            begun = tmp_path / f"begun-{number}"
            body = json.dumps(call(number, "hold", fifo=fifo.path, begun=str(begun))).encode()
            stack.enter_context(door.connect()).sendall(head(Content_Length=len(body)) + body)
            until(begun.exists)
        with door.connect() as refused:
            received = receive_all(refused)
        fifo.release(4)

        assert received.startswith(b"HTTP/1.1 503")
        assert b"\r\nRetry-After: 1\r\n" in received
        until(lambda: door.request("GET", "/healthz", headers={}).status == 200)


@pytest.mark.parametrize("sent", [b"", START, START + LENGTH + b"\r\n" + PING[:10]], ids=["nothing", "head", "body"])
def test_clients_that_send_nothing_do_not_keep_others_out(fake, sent):
    door = fake("no-auth", "MAX_CONNECTIONS=5")
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(door.connect()).sendall(sent)

        assert [door.post("/mcp", PING).status for _ in range(10)] == [200] * 10


def test_clients_that_do_not_read_their_answers_do_not_keep_others_out(fake):
    door = fake("no-auth", "MAX_CONNECTIONS=5")
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"t":"%b"}}}'
    body %= b"x" * 500_000
    request = START + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with ExitStack() as stack:
        for _ in range(6):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((door.host, door.port))
            fill(client, request)

        assert [door.post("/mcp", PING).status for _ in range(10)] == [200] * 10


def fill(client, request):
    """Send a request again and again until the server reads no more, because its answers are not read."""
    client.setblocking(False)
    rest = request
    with suppress(ConnectionResetError, BrokenPipeError):
        while select.select([], [client], [], 0.3)[1]:
            rest = rest[client.send(rest) :] or request


def test_a_full_server_cuts_the_connection_that_it_waits_for_longest(fake):
    door = fake("no-auth", "MAX_CONNECTIONS=3")
    with door.connect() as first, door.connect() as second, door.connect() as third, door.connect() as fourth:
        assert receive_all(first) == b""
        for client in (second, third, fourth):
            client.sendall(head(method="GET", path="/healthz"))
            assert read_answer(client)[0] == 200


def test_no_part_of_a_request_is_copied_into_the_headers_of_an_answer(door):
    answer = door.post("/mcp", call("a\r\nSet-Cookie: b=c", "echo"), X_Evil="x", Origin="http://localhost")
    names = {name.lower() for name in answer.headers}

    assert names == {"content-type", "content-length"}


def test_answers_are_sent_without_delay():
    async def connect():
        made = asyncio.get_running_loop().create_future()

        class NotedConnection(BoundedConnection):
            def connection_made(self, transport):
                super().connection_made(transport)
                made.set_result(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

        config = Config(None, http=BoundedConnection, log_config=None, ws="none")
        make = partial(NotedConnection, config, ServerState(), {}, on_made=print, on_lost=print)
        server = await asyncio.get_running_loop().create_server(make, sock=socket.create_server(("127.0.0.1", 0)))
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            return await made
        finally:
            writer.close()
            await writer.wait_closed()
            server.close()

    assert asyncio.run(connect()) != 0


def test_hostile_clients_cannot_fill_standard_error(fake):
    door = fake("no-auth", "HEAD_SECONDS=0.2")
    pieces = [
        b"GARBAGE\r\n\r\n",
        START + b"Content-Length: x\r\n\r\n",
        START + b"Transfer-Encoding: chunked\r\n\r\nzz",
        START + b"Upgrade: websocket\r\nConnection: Upgrade\r\nConnection: close\r\n" + LENGTH + b"\r\n" + PING,
        START + b"Origin: null\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcdeXX",
        START + LENGTH + b"\r\n" + PING + b"GARBAGE\r\n\r\n",
        START + b"Content-Length: 500\r\n\r\n" + PING,
        b"POST /mcp",
    ]
    for piece in pieces:
        with door.connect() as client:
            client.sendall(piece)
            client.shutdown(socket.SHUT_WR)
            receive_all(client)
    door.process.terminate()

    assert door.process.stderr.read() == b""
