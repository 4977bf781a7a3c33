"""Benchmark the cost of a call without a tool: Kaiza's stdio transport, the MCP SDK's, and a bare loop.

    uv run python benchmarks/dispatch.py [ROUNDS]

All servers answer the same trivial tool. Rounds are interleaved; the best of each figure is printed.
"""

# ruff: noqa: PLC0415  each server imports only what it needs, because imports are measured, too

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

CALLS = 3000
TICK = os.sysconf("SC_CLK_TCK")
SCHEMA = {"type": "object", "properties": {}}
TOOL = {"name": "echo", "description": "Echoes.", "inputSchema": SCHEMA, "outputSchema": SCHEMA}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
OUTPUT = {"said": "hello", "summary": "said"}


class Figures(NamedTuple):
    """Figures of one server in one round."""

    initialize_ms: float
    list_ms: float
    startup_cpu_ms: float
    p50_us: float
    p99_us: float
    modern_p50_us: float
    cpu_us: float
    rss_mb: float


def serve_kaiza() -> None:
    """Kaiza's transport with an empty application."""
    from kaiza.domain.call import CallRequest, Outcome
    from kaiza.server.serve import serve
    from kaiza.wire.dialect import ServerDescription

    class Call:
        deadline = time.monotonic() + 3600

    class EmptyApp:
        def stamp(self, _request: CallRequest, /) -> Any:
            return Call()

        def answer(self, _call: Any, /) -> Outcome | None:
            return Outcome("echo", output=OUTPUT)

        def expire(self, _call: Any, _cap: str = "timeout", /) -> Outcome | None:
            return None

        def close(self) -> None:
            return None

    serve(EmptyApp, ServerDescription("1", "", lambda: [TOOL]))


def serve_sdk() -> None:
    """The SDK's low-level server on its stdio transport."""
    import anyio
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool.model_validate(TOOL)])

    async def call_tool(_context: Any, _params: Any) -> types.CallToolResult:
        text = types.TextContent(type="text", text=json.dumps(OUTPUT))
        return types.CallToolResult(content=[text], structured_content=OUTPUT)

    async def run() -> None:
        server: Server[Any] = Server("kaiza", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(run)


def serve_bare() -> None:
    """No protocol: a line in, a line out."""
    for line in sys.stdin.buffer:
        number = json.loads(line).get("id")
        if number is not None:
            content = [{"type": "text", "text": json.dumps(OUTPUT)}]
            result = {"content": content, "structuredContent": OUTPUT, "isError": False}
            sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n")
            sys.stdout.buffer.flush()


SERVERS: dict[str, Callable[[], None]] = {"bare loop": serve_bare, "kaiza": serve_kaiza, "mcp SDK": serve_sdk}


class Client:
    """A minimal client."""

    def __init__(self, name: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.number = 0

    def ask(self, method: str, params: dict[str, Any]) -> float:
        """Send a request and wait for its answer; the time in microseconds."""
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        line = json.dumps(message).encode() + b"\n"
        started = time.perf_counter()
        self.send(line)
        answer = self.process.stdout.readline() if self.process.stdout else b""
        elapsed_us = (time.perf_counter() - started) * 1e6
        if b'"result"' not in answer:
            raise SystemExit(f"{method}: {answer!r}")
        return elapsed_us

    def send(self, line: bytes) -> None:
        """Write one line."""
        if self.process.stdin:
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def cpu_seconds(self) -> float:
        """CPU time of the server so far."""
        with open(f"/proc/{self.process.pid}/stat") as stat:  # noqa: PTH123  a benchmark's reading of one line
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def rss_mb(self) -> float:
        """Resident memory of the server."""
        with open(f"/proc/{self.process.pid}/status") as status:  # noqa: PTH123  as above
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

    def close(self) -> None:
        """Close its input and wait for it to exit."""
        self.process.communicate()


def measure(name: str) -> Figures:
    """Measure one server once."""
    started = time.perf_counter()
    client = Client(name)
    client.ask("initialize", HELLO)
    initialized = time.perf_counter()
    client.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    client.ask("tools/list", {})
    listed = time.perf_counter()
    client.ask("tools/call", {"name": "echo", "arguments": {}})
    startup_cpu = client.cpu_seconds()
    times = sorted(client.ask("tools/call", {"name": "echo", "arguments": {"n": n}}) for n in range(CALLS))
    cpu, rss = client.cpu_seconds() - startup_cpu, client.rss_mb()
    client.close()
    return Figures(
        initialize_ms=(initialized - started) * 1e3,
        list_ms=(listed - started) * 1e3,
        startup_cpu_ms=startup_cpu * 1e3,
        p50_us=statistics.median(times),
        p99_us=times[int(len(times) * 0.99)],
        modern_p50_us=measure_modern(name),
        cpu_us=cpu / CALLS * 1e6,
        rss_mb=rss,
    )


def measure_modern(name: str) -> float:
    """Median time of a call in the newer protocol revision, without a handshake."""
    client = Client(name)
    client.ask("server/discover", {"_meta": MODERN})
    call = {"name": "echo", "arguments": {}, "_meta": MODERN}
    times = [client.ask("tools/call", call) for _ in range(CALLS)]
    client.close()
    return statistics.median(times)


def table_rows(rounds: int) -> Iterator[str]:
    """Rows of the table: the best of every figure."""
    results: dict[str, list[Figures]] = {name: [] for name in SERVERS}
    for _ in range(rounds):
        for name, figures in results.items():
            figures.append(measure(name))
    yield "| server | " + " | ".join(Figures._fields) + " |"
    yield "|---|" + "---:|" * len(Figures._fields)
    for name, figures in results.items():
        best = [min(column) for column in zip(*figures, strict=True)]
        yield f"| {name} | " + " | ".join(f"{figure:.0f}" for figure in best) + " |"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        SERVERS[sys.argv[2]]()
    else:
        for row in table_rows(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
            print(row)
