"""Benchmark a small call beside searches: on stdio beside 40 of the same client, over HTTP beside 48 of another token.

    uv run python benchmarks/fairness.py

Each search reads 40 MB and finds nothing. Prints the median and the longest time of the small calls, and the searches
that were answered meanwhile.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http import HttpClient  # the script beside this one, not the standard library's
from pathlib import Path

from serve import Client

FILES = 4_000
LINES = 320
SEARCHES_STDIO = 40
SEARCHES_HTTP = 48
CALLS = 40
SEARCH = {"query": r"q[a-z]+z\d{7}", "regex": True}


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "project")
        root.mkdir()
        environment = {**os.environ, "HOME": directory, "XDG_STATE_HOME": str(Path(directory, "state"))}
        kaiza = [sys.executable, "-m", "kaiza"]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([*kaiza, "init", "--yes", str(root)], env=environment, check=True, **quiet)
        for number in range(FILES):
            (root / f"dir{number % 40}").mkdir(exist_ok=True)
            (root / f"dir{number % 40}" / f"{number}.txt").write_text(("y" * 31 + "\n") * LINES)
        (root / "small.txt").write_text("hello\n")
        serve = [*kaiza, "serve", "--workspace", str(root)]
        print("| small call | beside | median | longest | searches answered meanwhile |\n|---|---|--:|--:|--:|")
        measure_stdio(serve, environment)
        measure_http(serve, environment, [make_token(kaiza, root, environment, name) for name in ("ada", "bob")])


def make_token(kaiza: list[str], root: Path, environment: dict[str, str], name: str) -> str:
    words = [*kaiza, "token", "new", name, "--workspace", str(root)]
    return subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout.split()[0]


def measure_stdio(command: list[str], environment: dict[str, str]) -> None:
    """Time reads that are sent after 40 searches. After each read that many searches are sent as were answered."""
    client = Client(command, environment)
    client.open()
    session = client.call("begin_session", {"role": "WINDSURF"})["structuredContent"]["session_id"]
    arguments = {"session_id": session, "path": "small.txt"}
    client.call("read_file", arguments)
    searches, number, durations, answered = 0, 10_000, [], 0
    for _ in range(CALLS):
        while searches < SEARCHES_STDIO:
            number, searches = number + 1, searches + 1
            params = {"name": "search_text", "arguments": {"session_id": session, **SEARCH}}
            client.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        started = time.perf_counter()
        client.send(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read_file", "arguments": arguments}}
        )
        while json.loads(client.process.stdout.readline())["id"] != 1:
            searches, answered = searches - 1, answered + 1
        durations.append(time.perf_counter() - started)
        time.sleep(0.05)
    client.process.kill()
    client.process.wait()
    show("read_file, stdio", f"{SEARCHES_STDIO} searches", durations, answered)


def measure_http(command: list[str], environment: dict[str, str], tokens: list[str]) -> None:
    """Time small calls of one token, while 48 connections of the other search without a pause."""
    client = HttpClient(command, environment, tokens[0])
    port = client.socket.getpeername()[1]
    answered = [0]
    begun = client.call("begin_session", {"role": "WINDSURF"})["structuredContent"]["session_id"]
    other = connect(port, tokens[1]).call("begin_session", {"role": "WINDSURF"})["structuredContent"]["session_id"]
    for _ in range(SEARCHES_HTTP):
        threading.Thread(target=search, args=(connect(port, tokens[1]), other, answered), daemon=True).start()
    time.sleep(2)
    for name, arguments in (("session_status", {}), ("read_file", {"path": "small.txt"})):
        before = answered[0]
        durations = []
        for _ in range(CALLS):
            durations += client.time_calls(name, {"session_id": begun, **arguments}, 1)
            time.sleep(0.05)
        show(f"{name}, HTTP", f"{SEARCHES_HTTP} searches of another token", durations, answered[0] - before)
    client.process.kill()
    client.process.wait()


def connect(port: int, token: str) -> HttpClient:
    """Another connection to the server."""
    client = HttpClient.__new__(HttpClient)
    client.connect(port, token)
    return client


def search(client: HttpClient, session: str, answered: list[int]) -> None:
    with contextlib.suppress(OSError, ValueError):
        while True:
            client.call("search_text", {"session_id": session, **SEARCH})
            answered[0] += 1


def show(name: str, beside: str, durations: list[float], answered: int) -> None:
    print(f"| `{name}` | {beside} | {statistics.median(durations):.3f} s | {max(durations):.3f} s | {answered} |")


if __name__ == "__main__":
    main()
