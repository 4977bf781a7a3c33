"""Many clients at once, with slow and aborting ones beside them."""

import asyncio
import json
import os
import sys
from collections import Counter
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from doors import call, request
from http_doors import HttpDoor, head
from scenes import records

from kaiza.cli import dispatch

CONNECTIONS = 200
REQUESTS = 20_000 if os.environ.get("KAIZA_LONG") else 2_000
MAX_GROWTH = 16 << 20
"""Bytes that the server may grow between a quarter of the requests and all of them."""

RETRY_SECONDS = 0.2
"""Before a call is sent again that found too many in flight; shorter than a client would wait."""


def messages(session):
    """A mix of requests, each with the status of its answer."""
    read = {"path": "a.txt", "session_id": session}
    return [
        ("/mcp", call(1, "read_file", **read), 200),
        ("/rpc", request(2, "tools/call", tool="read_file", input=read), 200),
        ("/rpc", call(3, "read_file", path="missing", session_id=session), 404),
        ("/rpc", call(4, "no_such_tool"), 404),
        ("/mcp", request(5, "ping"), 200),
        ("/rpc", [], 400),
    ]


def resident(door):
    """Resident memory of the server in bytes."""
    pages = int(Path(f"/proc/{door.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class Crowd:
    """Clients that take requests from one list until it is empty."""

    def __init__(self, door, mix):
        self.door = door
        self.mix = mix
        self.left = iter(range(REQUESTS))
        self.unexpected = []
        self.statuses = Counter()
        self.answered_calls = 0
        self.refused = 0

    async def run(self):
        await asyncio.gather(*(self.use_connection() for _ in range(CONNECTIONS)))

    async def use_connection(self):
        connection = None
        for number in self.left:
            path, message, expected = self.mix[number % len(self.mix)]
            body = json.dumps(message).encode()
            status = 503
            while status == 503:
                # A connection may be closed while no request is on its way: a client connects again.
                with suppress(ConnectionError, asyncio.IncompleteReadError):
                    connection = connection or await asyncio.open_connection(self.door.host, self.door.port)
                    used, connection = connection, None
                    status = await send(*used, path, body)
                    connection = used
                if status == 503:
                    self.refused += 1
                    await asyncio.sleep(RETRY_SECONDS)
            self.statuses[status] += 1
            self.answered_calls += b"tools/call" in body
            if status != expected:
                self.unexpected.append((message, status))
        if connection is not None:
            connection[1].transport.abort()


async def send(reader, writer, path, body):
    """Send a request on a connection that is kept; the status of its answer."""
    writer.write(head(path, Content_Length=len(body)) + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.split()[1]))
    return int(answer.split()[1])


@asynccontextmanager
async def connect(door):
    """A connection that is aborted at the end."""
    reader, writer = await asyncio.open_connection(door.host, door.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        writer.close()


async def drip(door):
    """Send a body byte by byte, again and again."""
    while True:
        async with connect(door) as (_, writer):
            writer.write(head(Content_Length=1000))
            for _ in range(20):
                writer.write(b" ")
                await asyncio.sleep(0.01)


async def abort(door, message):
    """Send a whole call and leave at once, again and again."""
    body = json.dumps(message).encode()
    while True:
        async with connect(door) as (_, writer):
            writer.write(head(Content_Length=len(body)) + body)
            await asyncio.sleep(0.01)


async def crowd_out(door, mix):
    """Send all requests, beside a slow and an aborting client; the memory after a quarter, and the crowd."""
    nuisances = [asyncio.create_task(drip(door)), asyncio.create_task(abort(door, mix[0][1]))]
    crowd = Crowd(door, mix)
    rest = crowd.left
    crowd.left = iter([next(rest) for _ in range(REQUESTS // 4)])
    await crowd.run()
    early, crowd.left = resident(door), rest
    await crowd.run()
    for nuisance in nuisances:
        nuisance.cancel()
    await asyncio.gather(*nuisances, return_exceptions=True)
    return early, crowd


@pytest.mark.long
def test_each_of_many_concurrent_calls_is_answered_once_there_is_room_and_the_log_stays_intact(workspace, capsys):
    (workspace / "a.txt").write_text("hello\n")
    command = [sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace), "--http", "127.0.0.1:0"]
    door = HttpDoor([*command, "--no-auth"])
    try:
        begun = door.post("/mcp", call(0, "begin_session", role="WINDSURF")).value
        early, crowd = asyncio.run(crowd_out(door, messages(begun["result"]["structuredContent"]["session_id"])))
        growth = resident(door) - early
        assert door.post("/mcp", request(1, "ping")).status == 200
    finally:
        status = door.end()
    called = sum(record["kind"] == "call" for record in records(workspace))
    verified = dispatch.main(["audit", "verify", "--workspace", str(workspace)])

    assert (crowd.unexpected, crowd.statuses.total(), status) == ([], REQUESTS, 0)
    assert growth < MAX_GROWTH
    assert called > crowd.answered_calls
    assert verified == 0
