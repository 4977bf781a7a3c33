"""Bodies of requests: long ones are parsed on threads, and their sum is bounded."""

import threading

import anyio
import pytest
from starlette.exceptions import HTTPException

from kaiza.domain.call import Principal
from kaiza.server.dialects import load_dialects
from kaiza.server.http import body
from kaiza.server.pipeline import Pipeline
from kaiza.wire.dialect import ServerDescription
from kaiza.wire.outline import Outline

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


class Upload:
    """A request whose body comes in pieces, the last one when it is told to."""

    def __init__(self, *pieces):
        self._pieces = pieces
        self.may_end = anyio.Event()

    async def stream(self):
        for piece in self._pieces:
            yield piece
        await self.may_end.wait()


def whole(*pieces):
    upload = Upload(*pieces)
    upload.may_end.set()
    return upload


class NotedPipeline(Pipeline):
    """Notes the thread that parses."""

    thread = None

    def parse_line(self, line):
        self.thread = threading.get_ident()
        return super().parse_line(line)


@pytest.mark.parametrize("spaces", [0, body.LONG_BYTES])
def test_only_a_long_body_is_parsed_on_another_thread(spaces):
    pipeline = NotedPipeline(load_dialects(ServerDescription("1", "", list)))
    parsed = anyio.run(body.BodyReader().parse, PING + b" " * spaces, pipeline, None)

    assert parsed.id == 1
    assert (pipeline.thread == threading.get_ident()) is (spaces == 0)


def test_of_a_body_that_is_too_long_an_outline_is_kept_and_its_memory_is_free_again(monkeypatch):
    monkeypatch.setattr(body, "MAX_HELD", 2 * body.MAX_BODY)

    async def receive():
        reader = body.BodyReader()
        pieces = [b'{"params":"', *[b"x" * (1 << 20)] * 17, b'","id":3}']
        for _ in range(3):
            outline = await reader.read(whole(*pieces), None)
        return outline

    outline = anyio.run(receive)

    assert isinstance(outline, Outline)
    assert outline.read() == {"params": "", "id": 3}


def test_long_bodies_of_one_token_keep_no_other_ones_from_being_received(monkeypatch):
    monkeypatch.setattr(body, "MAX_HELD", 4000)
    monkeypatch.setattr(body, "MAX_HELD_OF_TOKEN", 3000)
    monkeypatch.setattr(body, "SMALL_BYTES", 10)
    greedy, other = Principal("greedy#1", "/w"), Principal("other#2", "/w")

    async def receive():
        reader = body.BodyReader()
        held, long, small = Upload(b"x" * 3000), Upload(b"y" * 1000), Upload(b"z" * 10)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.read, held, greedy)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(HTTPException) as refused:
                await reader.read(whole(b"!" * 11), greedy)
            received = []
            tasks.start_soon(read, received, reader, long, other)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(HTTPException):
                await reader.read(whole(b"?" * 11), other)  # less than its own limit, and more than that of all
            small.may_end.set()
            await read(received, reader, small, greedy)
            long.may_end.set()
            held.may_end.set()
        await reader.read(long, other)  # what was received is free again
        return refused.value, received

    async def read(received, reader, upload, principal):
        received.append(len(await reader.read(upload, principal)))

    refusal, received = anyio.run(receive)

    assert (refusal.status_code, refusal.headers) == (503, {"Retry-After": "1"})
    assert received == [10, 1000]


def test_a_token_waits_for_the_parser_of_its_own_bodies_only():
    class Stuck(NotedPipeline):
        def parse_line(self, line):
            assert other_is_parsed.wait(30)
            return super().parse_line(line)

    def make(kind):
        return kind(load_dialects(ServerDescription("1", "", list)))

    other_is_parsed, line = threading.Event(), PING + b" " * body.LONG_BYTES

    async def parse():
        reader = body.BodyReader()
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(reader.parse, line, make(Stuck), Principal("greedy#1", "/w"))
            await anyio.wait_all_tasks_blocked()
            parsed = await reader.parse(line, make(NotedPipeline), Principal("other#2", "/w"))
            other_is_parsed.set()
        return parsed

    assert anyio.run(parse).id == 1
