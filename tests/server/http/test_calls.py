"""Calls over HTTP: deadlines, workers, the bound on calls in flight, clients that leave, and the end of the server."""

import json
import signal
import socket
import threading

import pytest
from doors import PATIENCE, call, request, until
from http_doors import head, modern

from kaiza.server.call_queue import SCANS
from kaiza.server.http.admission import MAX_CALL_BYTES, MAX_CALLS, MAX_CALLS_OF_TOKEN, MIN_CALLS_OF_TOKEN

PLACES = SCANS.places


class Posts:
    """Requests at the same time, each on a thread."""

    def __init__(self, door, path="/mcp", **headers):
        self.door, self.path, self.headers = door, path, headers
        self.answers = []
        self.threads = []

    def post(self, message):
        def run():
            self.answers.append(self.door.post(self.path, message, **self.headers))

        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()

    def finish(self):
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        return self.answers


class Holds:
    """Calls that wait for a FIFO."""

    def __init__(self, door, fifo, directory):
        self.posts, self.fifo, self.directory = Posts(door), fifo, directory

    def __call__(self, number, *, wait=True, **arguments):
        """Start a call, and wait until it runs."""
        begun = self.directory / f"begun-{number}"
        self.posts.post(call(number, "hold", fifo=self.fifo.path, begun=str(begun), **arguments))
        if wait:
            until(begun.exists)


@pytest.fixture
def hold(door, fifo, tmp_path):
    return Holds(door, fifo, tmp_path)


def codes(answers):
    return sorted(answer.value["result"]["isError"] for answer in answers)


def test_calls_run_at_the_same_time_and_protocol_requests_do_not_wait_for_them(door, hold, fifo):
    for number in range(PLACES):
        hold(number)

    assert door.post("/mcp", request(9, "ping")).status == 200
    assert door.request("GET", "/healthz", headers={}).status == 200
    fifo.release(PLACES)
    assert codes(hold.posts.finish()) == [False] * PLACES


def test_an_overdue_call_is_answered_and_recorded_once(door, fifo):
    answer = door.post("/rpc", call(1, "hold", fifo=fifo.path, timeout=0.05))
    fifo.release()

    assert answer.status == 504
    assert door.end() == 0
    assert [record.get("code") for record in door.records()] == ["CAP_EXCEEDED", None]


def test_calls_beyond_the_limit_are_refused_until_there_is_room(door, hold, fifo):
    for number in range(MAX_CALLS + 5):
        hold(number, wait=False)
    until(lambda: len(hold.posts.answers) == 5)
    refused = list(hold.posts.answers)
    fifo.release(MAX_CALLS)
    answers = [answer for answer in hold.posts.finish() if answer not in refused]

    assert [(answer.status, answer.headers["Retry-After"]) for answer in refused] == [(503, "1")] * 5
    assert codes(answers) == [False] * MAX_CALLS
    assert door.post("/mcp", call(100, "echo")).status == 200


def test_small_calls_are_answered_although_the_slow_ones_in_flight_are_at_their_limit(door, hold, fifo):
    for number in range(MAX_CALLS + 1):
        hold(number, wait=False)
    until(lambda: hold.posts.answers)
    small = [door.post("/mcp", call(number, "session_status")).status for number in range(10)]
    fifo.release(MAX_CALLS)

    assert small == [200] * 10
    assert sorted(answer.status for answer in hold.posts.finish()) == [200] * MAX_CALLS + [503]


@pytest.mark.parametrize("slow", ["hold", "read_file", "write_file"])
@pytest.mark.parametrize("small", ["session_status", "echo"])
def test_calls_of_one_token_do_not_keep_another_ones_waiting(fake, fifo, slow, small):
    door = fake()
    posts = Posts(door, Authorization="Bearer sesame")
    for number in range(MAX_CALLS_OF_TOKEN + 3):
        posts.post(call(number, slow, fifo=fifo.path))
    until(lambda: len(posts.answers) == 3)
    refused = [answer.status for answer in posts.answers]
    others = [door.post("/mcp", call(1, small), Authorization="Bearer tahini").status for _ in range(5)]
    fifo.release(MAX_CALLS_OF_TOKEN)

    assert (refused, others) == ([503] * 3, [200] * 5)
    assert len(posts.finish()) == MAX_CALLS_OF_TOKEN + 3


def test_tokens_that_fill_the_server_do_not_keep_another_one_out(fake, fifo):
    door = fake()
    posts = Posts(door, Authorization="Bearer sesame"), Posts(door, Authorization="Bearer tahini")
    for each in posts:
        for number in range(MAX_CALLS_OF_TOKEN):
            each.post(call(number, "hold", fifo=fifo.path))
    until(lambda: sum(len(each.answers) for each in posts) == 2 * MAX_CALLS_OF_TOKEN - MAX_CALLS)
    third = Posts(door, Authorization="Bearer cumin")
    for number in range(MIN_CALLS_OF_TOKEN):
        third.post(call(number, "echo"))
    fifo.release(MAX_CALLS)

    assert [answer.status for answer in third.finish()] == [200] * MIN_CALLS_OF_TOKEN
    for each in posts:
        each.finish()


def test_large_requests_of_one_token_are_refused_until_there_is_room_and_those_of_others_are_not(fake, fifo):
    door = fake()
    posts = Posts(door, Authorization="Bearer sesame")
    text = "x" * 1_000_000
    count = -(-MAX_CALL_BYTES // len(text))
    for number in range(count + 2):
        posts.post(call(number, "hold", fifo=fifo.path, text=text))
    until(lambda: len(posts.answers) == 2)
    refused = [answer.status for answer in posts.answers]
    other = door.post("/mcp", call(1, "echo", text=text), Authorization="Bearer tahini").status
    fifo.release(count)

    assert (refused, other) == ([503] * 2, 200)
    assert sorted(answer.status for answer in posts.finish()) == [200] * count + [503] * 2


def test_a_call_continues_and_is_recorded_after_its_client_disconnects(door, fifo, tmp_path):
    body = json.dumps(call(1, "hold", fifo=fifo.path, begun=str(tmp_path / "begun"))).encode()
    with door.connect() as client:
        client.sendall(head(Content_Length=len(body)) + body)
        until((tmp_path / "begun").exists)
    assert door.records() == []
    fifo.release()
    until(door.records)

    assert door.records() == [{"tool": "hold", "code": None}]


def test_the_same_id_may_be_used_at_the_same_time(door, hold, fifo):
    hold(1)
    again = door.post("/mcp", call(1, "echo"))
    fifo.release()

    assert again.value["result"]["isError"] is False
    assert codes(hold.posts.finish()) == [False]


def test_a_cancellation_is_ignored(door, hold, fifo):
    hold(1)
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    status = door.post("/mcp", note).status
    fifo.release()

    assert status == 202
    assert codes(hold.posts.finish()) == [False]


def test_a_bug_is_answered_under_the_requests_id_and_printed(door):
    message, headers = modern("m", "tools/call", name="crash")
    answers = [
        door.post("/mcp", call("a", "crash")),
        door.post("/mcp", message, **headers),
        door.post("/rpc", call("a", "crash")),
    ]

    assert [answer.status for answer in answers] == [200, 500, 500]
    assert [answer.value["id"] for answer in answers] == ["a", "m", "a"]
    assert {answer.error["code"] for answer in answers} == {-32603}
    assert door.post("/mcp", call(2, "echo")).status == 200
    door.process.terminate()
    assert b"a bug in a tool" in door.process.stderr.read()


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGINT"])
def test_a_signal_lets_running_calls_end_and_closes_the_log(fake, fifo, tmp_path, signal_name):
    door = fake("no-auth", "DRAIN_SECONDS=3600", "END_SECONDS=3600", "EXIT_SECONDS=3600")
    hold = Holds(door, fifo, tmp_path)
    hold(1)
    door.process.send_signal(getattr(signal, signal_name))
    until(lambda: not can_connect(door))
    fifo.release()
    (answer,) = hold.posts.finish()
    door.process.wait(PATIENCE)

    assert answer.value["result"]["isError"] is False
    assert door.process.returncode == 0
    assert door.records() == [{"tool": "hold", "code": None}, {"closed": True}]


def test_calls_that_do_not_end_after_a_signal_are_answered_and_the_server_exits_with_0(fake, fifo, tmp_path):
    door = fake("no-auth", "END_SECONDS=3600", "EXIT_SECONDS=3600")
    hold = Holds(door, fifo, tmp_path)
    for number in range(3):
        hold(number)
    door.process.terminate()
    answers = hold.posts.finish()
    door.process.wait(PATIENCE)

    assert codes(answers) == [True] * 3
    assert door.process.returncode == 0
    assert [record.get("code") for record in door.records()] == ["CAP_EXCEEDED"] * 3 + [None]


def test_idle_and_half_open_connections_do_not_delay_the_end(fake):
    door = fake("no-auth", "DRAIN_SECONDS=3600", "END_SECONDS=3600", "EXIT_SECONDS=3600", "HEAD_SECONDS=3600")
    with door.connect() as idle, door.connect() as half:
        half.sendall(b"POST /mcp HTTP/1.1\r\nHost")
        idle.sendall(head(method="GET", path="/healthz"))
        idle.recv(100)

        assert door.end() == 0


def test_a_change_that_cannot_be_ended_does_not_keep_the_server_alive(door, fifo, tmp_path):
    begun = tmp_path / "begun"
    body = json.dumps(call(1, "hold", fifo=fifo.path, begun=str(begun), past_intent=True)).encode()
    with door.connect() as client:
        client.sendall(head(Content_Length=len(body)) + body)
        until(begun.exists)
        door.process.terminate()

        assert door.process.wait(PATIENCE) == 0
    assert door.process.stderr.read() == b""


def test_a_client_that_does_not_read_does_not_delay_the_end(door):
    body = json.dumps(call(1, "echo", text="x" * 500_000)).encode()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((door.host, door.port))
        client.settimeout(0.5)
        with pytest.raises(TimeoutError):
            client.sendall((head(Content_Length=len(body)) + body) * 50)
        door.process.terminate()

        assert door.process.wait(PATIENCE) == 0
    assert door.process.stderr.read() == b""


def test_a_log_that_never_closes_does_not_keep_the_server_alive(fake):
    door = fake("no-auth", "lingering")
    door.post("/mcp", call(1, "echo"))

    assert door.end() == 0


def can_connect(door):
    try:
        with door.connect():
            return True
    except OSError:
        return False
