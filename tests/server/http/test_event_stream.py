"""Progress over HTTP: a stream of events only if progress is reported before the answer."""

import asyncio
import json

import pytest
from doors import call
from http_doors import modern

from kaiza.server.call_runner import CallAnswer
from kaiza.server.http.event_stream import MAX_WAITING, EventStream


def held(fifo, progress, **more):
    message = call(1, "hold", fifo=fifo.path, progress=progress, **more)
    message["params"]["_meta"] = {"progressToken": "p"}
    return message


def events(answer):
    *blocks, rest = answer.body.split(b"\n\n")
    lines = [block.split(b"\n") for block in blocks]

    assert rest == b""
    assert all(name == b"event: message" and data.startswith(b"data: ") for name, data in lines)
    return [json.loads(data[6:]) for _, data in lines]


def test_progress_comes_before_the_answer_as_events(door, fifo):
    fifo.release()
    answer = door.post("/mcp", held(fifo, 3))
    *progress, last = events(answer)

    assert (answer.status, answer.headers["Content-Type"].partition(";")[0]) == (200, "text/event-stream")
    assert answer.headers["Cache-Control"] == "no-store"
    assert [line["params"] for line in progress] == [
        {"progressToken": "p", "progress": done, "total": 9} for done in (1, 2, 3)
    ]
    assert (last["id"], last["result"]["structuredContent"]["summary"]) == (1, "held")


def test_progress_comes_while_the_call_runs(door, fifo):
    with door.connect() as client:
        body = json.dumps(held(fifo, 1)).encode()
        client.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        client.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        received = b""
        while b"notifications/progress" not in received:
            received += client.recv(4096)
        assert b"held" not in received
        fifo.release()
        while not received.endswith(b"0\r\n\r\n"):
            received += client.recv(4096)

    assert b"held" in received


def test_a_client_without_a_handshake_gets_progress_too(door, fifo):
    fifo.release()
    message, headers = modern(
        1, "tools/call", name="hold", arguments={"fifo": fifo.path, "progress": 1, "endless": True}
    )
    message["params"]["_meta"]["progressToken"] = 7
    first, last = events(door.post("/mcp", message, **headers))

    assert first["params"] == {"progressToken": 7, "progress": 1}
    assert last["result"]["resultType"] == "complete"


@pytest.mark.parametrize(
    ("path", "headers", "progress", "token"),
    [
        ("/mcp", {}, 0, "p"),
        ("/mcp", {}, 1, None),
        ("/mcp", {}, 3, "x" * 257),
        ("/mcp", {"Accept": "application/json"}, 1, "p"),
        ("/rpc", {}, 1, "p"),
    ],
)
def test_an_answer_without_progress_is_plain_json(door, fifo, path, headers, progress, token):
    fifo.release()
    message = held(fifo, progress)
    message["params"]["_meta"] = {"progressToken": token} if token else {}
    answer = door.post(path, message, **headers)

    assert answer.headers["Content-Type"] == "application/json"
    assert answer.value["result"]["structuredContent"]["summary"] == "held"


def test_a_bug_after_progress_is_an_internal_error(door, fifo):
    fifo.release()
    answer = door.post("/mcp", held(fifo, 1, crash=True))
    _, last = events(answer)

    assert (last["id"], last["error"]["code"]) == (1, -32603)
    # Read before the server is ended: the thread prints its traceback after it has answered.
    while b"a bug in a tool" not in (line := door.process.stderr.readline()):
        assert line


def test_progress_for_a_client_that_does_not_read_is_dropped_and_the_answer_is_not():
    async def respond():
        stream, answered = EventStream(None), asyncio.get_running_loop().create_future()
        work = asyncio.ensure_future(stream.respond(wait_for(answered), None))
        stream.send(b"first")
        response = await work
        await asyncio.to_thread(lambda: [stream.send(b"%d" % number) for number in range(10_000)])
        answered.set_result(CallAnswer(b"the answer"))
        return [event async for event in response.body_iterator]

    first, *progress, last = asyncio.run(respond())

    assert (b"first" in first, b"the answer" in last) == (True, True)
    assert [int(event.split()[-1]) for event in progress] == list(range(10_000))[-MAX_WAITING:]


async def wait_for(future):
    return await future
