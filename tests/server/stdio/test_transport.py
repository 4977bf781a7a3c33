import json
import os
import select
import signal
import socket
from itertools import product

import pytest
from doors import PATIENCE, call, request, until
from frames import MALFORMED
from mcp.client.stdio import FORCE_KILL_TIMEOUT

from kaiza.server.call_queue import MAX_STUCK, READS, SCANS
from kaiza.server.call_runner import IDLE_THREADS
from kaiza.server.stdio.transport import EXIT_SECONDS, MAX_UNSENT, MAX_UNSENT_BYTES
from kaiza.wire import framing

PING = request("alive?", "ping")
INITIALIZE = request(
    0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "test", "version": "1"}
)
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


REJECTIONS = {
    -32700: ("Parse error", "PARSE_ERROR"),
    -32600: ("Invalid MCP envelope", "INVALID_ENVELOPE"),
    -32601: ("Method not found", "METHOD_NOT_FOUND"),
    -32602: ("Invalid request parameters", "INVALID_PARAMS"),
}
NO_LIMITS = ("DRAIN_SECONDS=3600", "END_SECONDS=3600", "EXIT_SECONDS=3600")
"""Options of the fake application with which a shutdown that waits for a time limit never ends."""


def answers_by_id(answers):
    return {answer["id"]: answer for answer in answers}


def test_a_client_initializes_lists_the_tools_and_calls_one(door):
    assert door.ask(INITIALIZE)["result"]["protocolVersion"] == "2025-11-25"
    door.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert door.ask(request(1, "tools/list"))["result"]["tools"][0]["name"] == "echo"
    answer = door.ask(call(2, "echo", greeting="hello"))

    assert answer["result"]["structuredContent"]["greeting"] == "hello"
    assert answer["result"]["structuredContent"]["client"] == "test 1"
    assert door.rest() == []
    assert door.process.returncode == 0
    assert door.records()[-1] == {"closed": True}


def test_both_protocol_revisions_are_served_on_one_pipe(door):
    modern = request(2, "tools/call", name="echo", arguments={}, _meta=MODERN)

    assert door.ask(request(1, "server/discover", _meta=MODERN))["result"]["supportedVersions"] == ["2026-07-28"]
    assert door.ask(INITIALIZE)["result"]["protocolVersion"] == "2025-11-25"
    assert door.ask(modern)["result"]["resultType"] == "complete"
    assert "resultType" not in door.ask(call(3, "echo"))["result"]


@pytest.mark.rows(
    "S3-2",
    "S3-3",
    "S3-4",
    "S3-8",
    "S3-9",
    "S3-10",
    "S3-19",
    "S3-30",
    "S4-2",
    "S4-3",
    "S4-6",
    "S4-8",
    "S4-28",
    "S4-29",
    "S4-30",
    "S4-31",
    "S4-62",
    "S4-63",
    "S4-68",
)
def test_every_malformed_line_is_answered_without_a_call_and_the_server_survives(door):
    for line, code, request_id in MALFORMED:
        answer = door.ask(line)

        assert answer["jsonrpc"] == "2.0", line
        assert (answer["error"]["code"], answer["id"]) == (code, request_id), line
        assert type(answer["id"]) is type(request_id), line
        assert (answer["error"]["message"], answer["error"]["data"]["error_code"]) == REJECTIONS[code], line
        assert door.ask(PING)["result"] == {}
    assert door.rest() == []
    assert door.records() == []


@pytest.mark.rows("S3-30")
def test_an_overlong_line_is_refused_under_its_id_and_not_buffered(door):
    door.ask(PING)
    door.process.stdin.write(b'{"method":"ping","params":{"a":"')
    for _ in range(64):
        door.process.stdin.write(b"x" * (1 << 20))
    door.say(b'"},"jsonrpc":"2.0","id":1}', PING)
    refused = door.hear()

    assert (refused["error"]["code"], refused["id"]) == (-32600, 1)
    assert refused["error"]["data"]["details"]["size"] > 64 << 20
    assert door.hear()["id"] == "alive?"
    assert _peak_memory_kb(door) < 80_000


def test_an_overlong_line_without_an_end_is_refused_when_the_input_ends(door):
    door.process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"' + b"x" * framing.MAX_LINE)
    (refused,) = door.rest()

    assert (refused["error"]["code"], refused["id"]) == (-32600, 1)


def _peak_memory_kb(door):
    with open(f"/proc/{door.process.pid}/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1])


def test_a_line_of_exactly_the_maximum_length_is_read(door):
    empty = json.dumps(call(1, "echo", said="")).encode()
    whole = empty.replace(b'""', b'"' + b"x" * (framing.MAX_LINE - len(empty)) + b'"')

    assert len(whole) == framing.MAX_LINE
    assert "result" in door.ask(whole)
    refused = door.ask(whole + b" ")
    assert (refused["id"], refused["result"]["isError"]) == (1, True)
    assert door.ask(PING)["result"] == {}


def test_a_last_line_without_a_newline_is_answered(door):
    door.process.stdin.write(json.dumps(call(1, "echo")).encode())

    assert [answer["id"] for answer in door.rest()] == [1]


def test_a_signal_lets_calls_finish_and_then_ends_the_server_at_once(fake, fifo):
    door = fake(*NO_LIMITS)
    door.say(*(call(number, "hold", fifo=fifo.path) for number in range(2 * SCANS.places)))
    door.ask(PING)
    door.signal()
    fifo.release(2 * SCANS.places)
    answers = answers_by_id(door.after_its_end())

    assert door.process.returncode == 0
    assert {number: answer["result"]["isError"] for number, answer in answers.items()} == dict.fromkeys(
        range(2 * SCANS.places), False
    )
    assert door.records()[-1] == {"closed": True}


def test_after_a_signal_calls_that_do_not_finish_are_expired_recorded_and_answered(fake, fifo):
    door = fake("END_SECONDS=3600", "EXIT_SECONDS=3600")
    door.say(*(call(number, "hold", fifo=fifo.path) for number in range(20)))
    door.ask(PING)
    door.signal()
    answers = answers_by_id(door.after_its_end())

    assert door.process.returncode == 0
    assert answers.keys() == set(range(20))
    envelopes = [json.loads(answers[number]["result"]["content"][0]["text"]) for number in range(20)]
    assert {(envelope["error_code"], envelope["cause"]["cap"]) for envelope in envelopes} == {
        ("CAP_EXCEEDED", "shutdown")
    }
    assert len(door.records()) == 21
    assert door.records()[-1] == {"closed": True}
    assert door.process.stderr.read() == b""


def test_a_server_has_exited_before_a_client_kills_it():
    assert EXIT_SECONDS < FORCE_KILL_TIMEOUT


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_server_at_once(fake, number):
    door = fake(*NO_LIMITS)
    door.ask(PING)
    door.signal(number)

    assert door.after_its_end() == []
    assert door.process.returncode == 0


def test_a_signal_does_not_end_a_change_past_its_intent(door, fifo):
    door.call(1, "hold", fifo=fifo.path, past_intent=True)
    door.ask(PING)
    door.signal()
    fifo.release()

    assert door.after_its_end()[0]["result"]["isError"] is False
    assert door.process.returncode == 0


def test_a_client_that_stops_reading_prevents_neither_the_shutdown_nor_a_record(fake):
    unread, outgoing = os.pipe()
    door = fake("END_SECONDS=3", "EXIT_SECONDS=4", stdout=outgoing)
    os.close(outgoing)
    door.say(*(call(number, "echo", text="x" * 50_000) for number in range(12)))
    until(lambda: len(door.records()) >= SCANS.places)
    # More than fits in a pipe, so that the calls before it are read when this returns.
    door.say({"jsonrpc": "2.0", "method": "notifications/any", "params": {"text": "x" * 500_000}})
    door.signal()

    assert door.process.wait(PATIENCE) == 0
    assert [record.get("tool") for record in door.records()] == ["echo"] * 12 + [None]
    os.close(unread)


def test_when_the_client_is_gone_the_server_records_its_calls_and_exits_quietly(fake, fifo):
    unread, outgoing = os.pipe()
    door = fake(stdout=outgoing)
    os.close(outgoing)
    door.call(1, "hold", fifo=fifo.path)
    door.say(PING)
    os.read(unread, 1 << 16)
    door.say(*(call(number, "echo") for number in range(2, 5)))
    os.close(unread)
    fifo.release()

    assert door.process.wait(PATIENCE) == 0
    assert door.process.stderr.read() == b""
    assert {"tool": "hold", "code": None} in door.records()
    assert door.records()[-1] == {"closed": True}


class Pipes:
    """Both ends of a server's input and output as pipes, as most clients create them."""

    def __init__(self):
        self.server_in, self.into = os.pipe()
        self.out, self.server_out = os.pipe()

    def say(self, *lines):
        os.write(self.into, b"".join(json.dumps(line).encode() + b"\n" for line in lines))

    def hear(self):
        return json.loads(os.read(self.out, 1 << 16))

    def end_input(self):
        os.close(self.into)

    def stop_reading(self):
        os.close(self.out)


class Sockets(Pipes):
    """The same as pairs of sockets, as Node creates them."""

    def __init__(self):
        ends = (*socket.socketpair(), *socket.socketpair())
        self.server_in, self.into, self.out, self.server_out = (end.detach() for end in ends)


@pytest.fixture(params=[Pipes, Sockets])
def client(request, fake):
    """A client on pipes or sockets, and the server that `begin` starts for it."""
    client = request.param()

    def begin(*arguments, start=fake):
        client.door = start(*arguments, stdin=client.server_in, stdout=client.server_out)
        os.close(client.server_in)
        os.close(client.server_out)
        return client

    client.begin = begin
    return client


@pytest.mark.parametrize("past_intent", [False, True])
def test_when_the_client_is_gone_the_server_exits_despite_a_stuck_call(client, fifo, past_intent):
    client.begin().say(call(1, "hold", fifo=fifo.path, past_intent=past_intent), PING)
    client.hear()
    client.end_input()
    client.stop_reading()
    ended = [] if past_intent else [{"tool": "hold", "code": "CAP_EXCEEDED"}]

    assert client.door.process.wait(PATIENCE) == 0
    assert client.door.process.stderr.read() == b""
    assert client.door.records() == [*ended, {"closed": True}]


def test_a_client_that_closes_its_output_ends_the_server_while_input_is_open(client):
    client.begin().say(PING)
    client.hear()
    client.stop_reading()

    assert client.door.process.wait(PATIENCE) == 0
    client.end_input()


def test_when_the_client_is_gone_the_server_exits_despite_a_full_backlog(client, fifo):
    client.begin().say(*(call(number, "hold", fifo=fifo.path) for number in range(200)))
    client.say(PING)
    client.end_input()
    until(client.door.built)
    client.stop_reading()

    assert client.door.process.wait(PATIENCE) == 0


@pytest.mark.parametrize("app", ["unclosable", "lingering"])
def test_after_end_of_input_the_server_exits_although_the_app_cannot_be_closed(client, app):
    client.begin(app).say(call(1, "echo"))
    client.hear()
    client.end_input()

    assert client.door.process.wait(PATIENCE) == 0
    client.stop_reading()


def test_after_end_of_input_calls_are_answered_until_the_client_stops_reading(client, make_fifo):
    first, second = make_fifo(), make_fifo()
    client.begin().say(*(call(number, "hold", fifo=fifo.path) for number, fifo in enumerate((first, second))), PING)
    client.hear()
    client.end_input()
    first.release()
    answer = client.hear()
    client.stop_reading()

    assert answer["id"] == 0
    assert client.door.process.wait(PATIENCE) == 0
    assert {"tool": "hold", "code": "CAP_EXCEEDED"} in client.door.records()


def test_long_answers_written_concurrently_do_not_mix(door, fifo):
    door.say(*(call(letter, "hold", fifo=fifo.path, letter=letter) for letter in "abcdefg"))
    door.ask(PING)
    fifo.release(7)
    answers = answers_by_id(door.hear() for _ in range(7))

    assert {letter: set(answers[letter]["result"]["structuredContent"]["text"]) for letter in answers} == {
        letter: {letter} for letter in "abcdefg"
    }


@pytest.mark.rows("S4-5")
def test_an_id_is_refused_while_pending_and_a_number_differs_from_its_digits(door, fifo):
    door.call(1, "hold", fifo=fifo.path)
    again = [door.ask(request(number, "ping")) for number in (1, 1.0)]
    other = door.ask(request("1", "ping"))
    fifo.release()
    first = door.hear()

    assert [answer["error"]["code"] for answer in again] == [-32600, -32600]
    assert again[0]["id"] == 1
    assert other == {"jsonrpc": "2.0", "id": "1", "result": {}}
    assert first["result"]["structuredContent"]["summary"] == "held"
    assert door.ask(call(1, "echo"))["result"]["isError"] is False


def test_a_call_under_a_pending_id_is_refused_and_recorded_and_the_id_stays_with_the_first(door, fifo):
    door.call(1, "hold", fifo=fifo.path)
    again = [door.ask(call(1, name)) for name in ("echo", "echo", "begin_session")]
    door.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    still_pending = door.ask(request(1, "ping"))
    fifo.release()

    assert {answer["error"]["data"]["error_code"] for answer in [*again, still_pending]} == {"INVALID_ENVELOPE"}
    assert door.rest() == []
    assert sorted(record.get("tool", "") for record in door.records()) == ["", "begin_session", "echo", "echo", "hold"]


@pytest.mark.rows("S4-4", "S4-17")
def test_an_id_is_returned_with_its_type(door):
    makers = [(call, "echo", "result"), (request, "ping", "result"), (request, "nope", "error")]
    for request_id, (make, name, member) in product(["a", "1", 1, 0, -1, 1.5, 2**53], makers):
        answer = door.ask(make(request_id, name))

        assert answer.keys() == {"jsonrpc", "id", member}
        assert answer["id"] == request_id
        assert type(answer["id"]) is type(request_id)


def test_a_cancelled_call_is_recorded_and_not_answered(door, make_fifo):
    first, second = make_fifo(), make_fifo()
    door.call(1, "hold", fifo=first.path)
    door.call("1", "hold", fifo=second.path)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    door.say(cancel)
    assert door.ask(PING)["id"] == "alive?"
    first.release()
    second.release()

    assert [answer["id"] for answer in door.rest()] == ["1"]
    assert len(door.records()) == 3


@pytest.mark.parametrize(
    "params", [{}, {"requestId": 77}, {"requestId": True}, {"requestId": [1]}, {"requestId": None}]
)
def test_a_cancellation_of_an_unknown_request_is_ignored(door, fifo, params):
    door.call(1, "hold", fifo=fifo.path)
    door.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    door.ask(PING)
    fifo.release()

    assert door.hear()["id"] == 1


def test_requests_other_than_calls_are_answered_while_all_workers_are_busy(door, fifo):
    door.say(*(call(number, "hold", fifo=fifo.path) for number in range(30)))
    for line in (PING, INITIALIZE, request(100, "tools/list"), request(101, "server/discover", _meta=MODERN)):
        assert door.ask(line)["id"] == line["id"]
    assert door.ask(b"nonsense")["error"]["code"] == -32700
    fifo.release(30)

    assert {door.hear()["id"] for _ in range(30)} == set(range(30))


def test_an_overdue_call_is_answered_once_and_its_worker_replaced(door, fifo):
    door.say(*(call(number, "hold", fifo=fifo.path, timeout=0.05) for number in range(12)))
    envelopes = [json.loads(door.hear()["result"]["content"][0]["text"]) for _ in range(12)]
    assert door.ask(call("after", "echo"))["result"]["isError"] is False
    fifo.release(12)

    assert {(envelope["error_code"], envelope["cause"]["cap"]) for envelope in envelopes} == {
        ("CAP_EXCEEDED", "timeout")
    }
    assert door.rest() == []
    assert len(door.records()) == 14


def test_a_call_in_the_backlog_expires_at_its_deadline_and_is_not_run(door, fifo):
    busy = [call(number, "hold", fifo=fifo.path) for number in range(SCANS.places)]
    door.say(*busy, call("early", "echo", timeout=0.05))
    early = door.hear()
    door.call("late", "echo", timeout=0.05)
    late = door.hear()
    fifo.release(len(busy))
    answers = door.rest()

    for answer, name in ((early, "early"), (late, "late")):
        envelope = json.loads(answer["result"]["content"][0]["text"])

        assert (answer["id"], envelope["error_code"], envelope["cause"]["cap"]) == (name, "CAP_EXCEEDED", "timeout")
    assert sorted(answer["id"] for answer in answers) == list(range(len(busy)))
    assert len(door.records()) == len(busy) + 3


def test_a_call_read_before_the_app_is_built_expires_in_the_backlog_too(fake, make_fifo):
    building, held = make_fifo(), make_fifo()
    door = fake("slow", building.path)
    door.say(*(call(number, "hold", fifo=held.path) for number in range(SCANS.places)))
    door.say(call("early", "echo", timeout=0.05))
    door.ask(PING)
    building.release()

    assert door.hear()["id"] == "early"
    held.release(SCANS.places)
    assert len(door.rest()) == SCANS.places


def test_server_info_does_not_wait_for_a_pending_begin_session(door, fifo):
    door.call("begin", "begin_session", fifo=fifo.path)
    door.say(*(call(number, "session_status") for number in range(2 * READS.places)))
    door.say(*(call(f"{number}", "hold", fifo=fifo.path) for number in range(2 * SCANS.places)))

    assert door.ask(call("server", "server_info"))["id"] == "server"
    fifo.release(1 + 2 * SCANS.places)
    assert len(door.rest()) == 1 + 2 * READS.places + 2 * SCANS.places


@pytest.mark.parametrize("slow", ["hold", "write_file", "run_checks"])
def test_small_calls_do_not_wait_behind_slow_ones_of_any_number(door, fifo, slow):
    door.say(*(call(number, slow, fifo=fifo.path) for number in range(MAX_UNSENT - 1)))
    for name in ("server_info", "session_status"):
        assert door.ask(call(name, name))["id"] == name
    fifo.release(MAX_UNSENT - 1)

    assert sorted(answer["id"] for answer in door.rest()) == list(range(MAX_UNSENT - 1))


def test_small_calls_do_not_wait_behind_small_ones_that_are_stuck(door, fifo):
    stuck = READS.places + MAX_STUCK - 1
    door.say(*(call(number, "read_file", fifo=fifo.path) for number in range(stuck)))

    assert door.ask(call("after", "session_status"))["id"] == "after"
    fifo.release(stuck)
    assert sorted(answer["id"] for answer in door.rest()) == list(range(stuck))


def test_threads_end_when_there_is_nothing_left_for_them(door, fifo):
    reads = READS.places + MAX_STUCK
    door.ask(call("first", "echo"))
    others = len(os.listdir(f"/proc/{door.process.pid}/task"))
    door.say(*(call(number, "read_file", fifo=fifo.path) for number in range(reads)))
    until(lambda: len(os.listdir(f"/proc/{door.process.pid}/task")) >= reads)
    fifo.release(reads)
    until(lambda: len(os.listdir(f"/proc/{door.process.pid}/task")) <= others + IDLE_THREADS)

    assert {door.hear()["id"] for _ in range(reads)} == set(range(reads))
    assert door.ask(call("last", "echo"))["result"]["isError"] is False


def test_small_calls_sent_with_begin_session_do_not_wait_behind_slow_ones(door, make_fifo):
    opening, slow = make_fifo(), make_fifo()
    door.call("begin", "begin_session", fifo=opening.path)
    door.say(*(call(number, "hold", fifo=slow.path) for number in range(30)), call("small", "session_status"))
    door.ask(PING)
    opening.release()

    assert [door.hear()["id"] for _ in range(2)] == ["begin", "small"]
    slow.release(30)
    assert sorted(answer["id"] for answer in door.rest()) == list(range(30))


def test_calls_that_wait_for_a_begin_session_expire_with_it_and_are_not_run(door, fifo, tmp_path):
    begun = tmp_path / "begun"
    door.call("begin", "begin_session", fifo=fifo.path, timeout=1)
    door.say(call("early", "hold", fifo=fifo.path, begun=str(begun), timeout=0.05), call("late", "echo"))
    answers = [door.hear() for _ in range(3)]
    fifo.release()

    assert not begun.exists()
    assert [answer["id"] for answer in answers] == ["early", "begin", "late"]
    assert [answer["result"]["isError"] for answer in answers] == [True, True, False]
    assert door.rest() == []


@pytest.mark.parametrize(("size", "limit"), [(4_000, 4_000 * 2 * MAX_UNSENT), (500_000, 2 * MAX_UNSENT_BYTES)])
def test_no_more_is_read_from_a_client_that_does_not_read(fake, size, limit):
    unread, outgoing = os.pipe()
    door = fake(stdout=outgoing)
    os.close(outgoing)
    into = door.process.stdin.fileno()
    os.set_blocking(into, False)
    sent, number, rest = 0, 0, b""
    while sent < limit and select.select([], [into], [], 1)[1]:
        if not rest:
            number += 1
            rest = json.dumps(call(number, "echo", text="x" * size, timeout=0.01)).encode() + b"\n"
        written = os.write(into, rest)
        sent, rest = sent + written, rest[written:]
    threads = len(os.listdir(f"/proc/{door.process.pid}/task"))
    os.close(unread)

    assert sent < limit
    assert threads < 2 * MAX_UNSENT
    assert door.process.wait(PATIENCE) == 0


def test_progress_that_is_not_read_is_dropped_and_the_answer_is_not(client, fifo, tmp_path):
    began = tmp_path / "began"
    asked = call(1, "hold", fifo=fifo.path, begun=str(began), progress=20_000)
    asked["params"]["_meta"] = {"progressToken": "x" * 256}
    client.begin().say(asked)
    until(began.exists)
    fifo.release()
    client.end_input()
    with open(client.out, "rb") as answers:
        *progress, last = map(json.loads, answers)

    assert last["result"]["structuredContent"]["summary"] == "held"
    assert 0 < len(progress) < 20_000
    assert {line["params"]["progressToken"] for line in progress} == {"x" * 256}


def test_a_server_with_all_workers_stuck_keeps_answering(door, fifo):
    workers = SCANS.places + MAX_STUCK
    stuck = {door.ask(call(number, "hold", fifo=fifo.path, timeout=0.02))["id"] for number in range(workers)}
    door.say(*(call(number, "echo", timeout=0.05) for number in range(100)))
    refused = {door.hear()["id"] for _ in range(100)}

    assert (stuck, refused) == (set(range(workers)), set(range(100)))
    assert door.ask(call("alive?", "server_info"))["id"] == "alive?"
    assert [record["code"] for record in door.records()] == ["CAP_EXCEEDED"] * (workers + 100) + [None]
    fifo.release(workers)


def test_a_call_that_fails_after_its_deadline_is_not_answered_again(door, fifo):
    door.call(1, "hold", fifo=fifo.path, timeout=0.05, crash=True)
    first = door.hear()
    fifo.release()

    assert first["id"] == 1
    assert door.rest() == []


def test_a_shorter_deadline_is_met_beside_a_longer_one(door, make_fifo):
    long, short = make_fifo(), make_fifo()
    door.call("long", "hold", fifo=long.path, timeout=25)
    door.call("short", "hold", fifo=short.path, timeout=0.05)

    assert door.hear()["id"] == "short"
    long.release()
    assert door.hear()["id"] == "long"


def test_a_call_past_its_intent_does_not_expire(door, fifo, make_fifo, tmp_path):
    begun = tmp_path / "begun"
    door.call(1, "hold", fifo=fifo.path, begun=str(begun), past_intent=True, timeout=1)
    until(begun.exists)
    door.call(2, "hold", fifo=make_fifo().path, timeout=1)

    assert door.hear()["id"] == 2
    fifo.release()
    assert door.hear()["result"]["isError"] is False


@pytest.mark.rows("S4-32")
def test_a_bug_in_a_tool_is_an_internal_error_and_the_server_survives(door):
    for number in range(20):
        answer = door.ask(call(number, "crash"))

        assert answer["error"]["code"] == -32603
        assert "bug" not in json.dumps(answer)
    assert door.ask(call("after", "echo"))["result"]["isError"] is False


def test_a_bug_in_tools_list_is_an_internal_error_and_the_server_survives(fake):
    door = fake("listless")
    for number in range(3):
        answer = door.ask(request(number, "tools/list"))

        assert (answer["id"], answer["error"]["code"]) == (number, -32603)
        assert door.ask(call("after", "echo"))["result"]["isError"] is False


@pytest.mark.rows("S4-1", "S4-16", "S1-101")
def test_only_answers_are_written_to_standard_output(door):
    answer = door.ask(call(1, "noise"))

    assert (answer["jsonrpc"], answer["id"]) == ("2.0", 1)
    assert door.rest() == []
    assert door.process.stderr.read().count(b"this") == 5


def test_calls_sent_with_begin_session_wait_for_its_answer(door, fifo):
    door.ask(call(0, "echo"))
    door.call(1, "begin_session", fifo=fifo.path)
    door.say(call(2, "echo"), call(3, "session_status"))
    door.ask(PING)
    fifo.release()

    assert door.hear()["id"] == 1
    assert {door.hear()["id"], door.hear()["id"]} == {2, 3}


def test_the_app_is_not_built_for_a_client_that_only_initializes(door):
    door.ask(INITIALIZE)
    door.ask(request(1, "server/discover", _meta=MODERN))

    assert door.rest() == []
    assert not door.built()
    assert door.records() == []


def test_the_app_is_built_when_tools_are_listed(door):
    door.ask(request(1, "tools/list"))

    until(door.built)
    assert door.rest() == []
    assert door.records() == [{"closed": True}]


@pytest.mark.parametrize("failure", ["broken", "buggy"])
def test_if_the_app_cannot_be_built_requests_are_answered_and_the_status_is_3(fake, failure):
    door = fake(failure)
    assert "result" in door.ask(INITIALIZE)
    door.call(1, "echo")
    answers = door.after_its_end()

    assert [answer["error"]["code"] for answer in answers] == [-32603]
    assert door.process.returncode == 3
    stderr = door.process.stderr.read()
    assert json.loads(stderr.splitlines()[-1]) == {"error_code": "BOOTSTRAP_FAILURE"}
    assert (b"Traceback" in stderr) == (failure == "buggy")
