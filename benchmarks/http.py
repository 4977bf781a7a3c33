"""Benchmark one small read over HTTP against the same read over stdio, interleaved. Both servers are Kaiza's.

    uv run python benchmarks/http.py

Over HTTP the client keeps its connection and sends a token, as MCP clients do.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from serve import CALLS, ROUNDS, Client


class HttpClient:
    """A server process, and one connection to it."""

    def __init__(self, command: list[str], environment: dict[str, str], token: str) -> None:
        self.process = subprocess.Popen(
            [*command, "--http", "127.0.0.1:0"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
        )
        self.connect(int(self.process.stderr.readline().rsplit(b":")[-1]), token)

    def connect(self, port: int, token: str) -> None:
        """Connect to the server on this port."""
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answers = self.socket.makefile("rb")
        self.head = (
            f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer {token}"
        )

    def call(self, name: str, arguments: dict) -> dict:
        params = {"name": name, "arguments": arguments}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        self.socket.sendall(f"{self.head}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        length = 0
        while (line := self.answers.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split()[1])
        answer = json.loads(self.answers.read(length))
        if "result" not in answer or answer["result"].get("isError"):
            raise SystemExit(f"{name} failed: {answer}")
        return answer["result"]

    def time_calls(self, name: str, arguments: dict, count: int) -> list[float]:
        durations = []
        for _ in range(count):
            started = time.perf_counter()
            self.call(name, arguments)
            durations.append(time.perf_counter() - started)
        return durations

    def close(self) -> None:
        self.answers.close()
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=10)
        self.process.stderr.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "project")
        root.mkdir()
        environment = {**os.environ, "HOME": directory, "XDG_STATE_HOME": str(Path(directory, "state"))}
        kaiza = [sys.executable, "-m", "kaiza"]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([*kaiza, "init", "--yes", str(root)], env=environment, check=True, **quiet)
        (root / "small.txt").write_text(("y" * 31 + "\n") * 32)
        words = [*kaiza, "token", "new", "bench", "--workspace", str(root)]
        token = subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout.split()[0]
        measure([*kaiza, "serve", "--workspace", str(root)], environment, token)


def measure(command: list[str], environment: dict[str, str], token: str) -> None:
    """Print the time of a small read, over both transports."""
    piped, posted = Client(command, environment), HttpClient(command, environment, token)
    piped.open()
    times: dict[str, list[float]] = {"stdio": [], "http": []}
    reads = {}
    for name, client in (("stdio", piped), ("http", posted)):
        session = client.call("begin_session", {"role": "WINDSURF"})["structuredContent"]["session_id"]
        reads[name] = {"path": "small.txt", "session_id": session}
    for _ in range(ROUNDS):
        for name, client in (("stdio", piped), ("http", posted)):
            times[name].append(statistics.median(client.time_calls("read_file", reads[name], CALLS)))
    ratio = statistics.median(a / b for a, b in zip(times["http"], times["stdio"], strict=True))
    posted_us, piped_us = (statistics.median(times[name]) * 1e6 for name in ("http", "stdio"))
    print(f"| `read_file` of 1 KB over HTTP, p50 | {posted_us:.0f} us | {piped_us:.0f} us |  {ratio:.2f} | 4 |")
    piped.close()
    posted.close()


if __name__ == "__main__":
    main()
