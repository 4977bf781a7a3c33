"""Benchmark Kaiza against the MCP project's filesystem server, interleaved: start-up, one small read, memory.

    uv run python benchmarks/serve.py
    uv run python benchmarks/serve.py first

`first` measures Kaiza alone: CPU time from the start to the first tool answer. The rest needs npm; the other server is
installed into a directory below the temporary directory.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OTHER_PACKAGE = "@modelcontextprotocol/server-filesystem@2026.8.31"
ROUNDS = 9
CALLS = 400
MEMORY_CALLS = 10_000
STARTS = 31


class Client:
    """A server process and its pipes."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self.request_count = 0

    def ask(self, method: str, params: dict) -> dict:
        """Send a request; its answer."""
        self.request_count += 1
        self.send({"jsonrpc": "2.0", "id": self.request_count, "method": method, "params": params})
        return json.loads(self.process.stdout.readline())

    def send(self, message: dict) -> None:
        """Send one line."""
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def open(self) -> tuple[float, float]:
        """Run the handshake; seconds from the start to the answers of `initialize` and `tools/list`."""
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", params)
        initialized = time.perf_counter() - self.started
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.ask("tools/list", {})
        return initialized, time.perf_counter() - self.started

    def call(self, name: str, arguments: dict) -> dict:
        """Call a tool; its result."""
        answer = self.ask("tools/call", {"name": name, "arguments": arguments})
        if "result" not in answer or answer["result"].get("isError"):
            raise SystemExit(f"{name} failed: {answer}")
        return answer["result"]

    def time_calls(self, name: str, arguments: dict, count: int) -> list[float]:
        """Call a tool `count` times; the duration of each call in seconds."""
        durations = []
        for _ in range(count):
            started = time.perf_counter()
            self.call(name, arguments)
            durations.append(time.perf_counter() - started)
        return durations

    def resident_mb(self) -> int:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) // 1024

    def cpu_ms(self) -> float:
        """CPU time so far in milliseconds, of all threads."""
        clock = (~self.process.pid << 3) | 2  # the kernel's number for the CPU clock of a process
        return time.clock_gettime(clock) * 1000

    def close(self) -> None:
        """End the process."""
        self.process.stdin.close()
        self.process.wait(timeout=10)


def install_other(directory: Path) -> list[str]:
    """Install the other server; its command."""
    entry = directory / "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
    if not entry.exists():
        directory.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--silent", "--prefix", directory, OTHER_PACKAGE], check=True)
    return ["node", str(entry)]


def main() -> None:
    """Print the table."""
    if sys.argv[1:] == ["first"]:
        measure_first_answer()
        return
    node = install_other(Path(tempfile.gettempdir()) / "kaiza-bench-node")
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "project")
        for name in ("plans", "audit"):
            (root / name).mkdir(parents=True)
        (root / "small.txt").write_text(("y" * 31 + "\n") * 32)
        environment = {**os.environ, "XDG_STATE_HOME": str(Path(directory, "state"))}
        ours = [sys.executable, "-m", "kaiza", "serve", "--workspace", str(root)]
        theirs = [*node, str(root)]
        measure_start(ours, theirs, environment)
        measure_reads(ours, theirs, environment, root)
        measure_memory(ours, environment)


def measure_first_answer() -> None:
    """Print the CPU time from the start to the opening and to the first tool answer, each in a new workspace."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    starts: list[tuple[float, ...]] = []
    for _ in range(STARTS + 1):
        with tempfile.TemporaryDirectory() as directory:
            starts.append(start_once(Path(directory), environment))
    steps = zip(*starts[1:], strict=True)  # the first start compiles changed modules
    spans = ("from spawn to `initialize`", "from spawn to `tools/list`", "from spawn to the answer of `begin_session`")
    for name, times in zip((*spans, "of the first refused argument"), steps, strict=True):
        figure = f"{statistics.median(times):.1f} ms ({min(times):.1f} to {max(times):.1f})"
        print(f"| CPU {name} | {figure} | | | |")


def start_once(directory: Path, environment: dict[str, str]) -> tuple[float, ...]:
    """Start a server in a new workspace made by `kaiza init`; its CPU time at each answer, and that of one refusal."""
    root = directory / "project"
    root.mkdir()
    kaiza = [sys.executable, "-m", "kaiza"]
    environment = {**environment, "HOME": str(directory), "XDG_STATE_HOME": str(directory / "state")}
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*kaiza, "init", "--yes", str(root)], env=environment, check=True, **quiet)
    client = Client([*kaiza, "serve", "--workspace", str(root)], environment)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    times = []
    for method, params in (("initialize", hello), ("tools/list", {})):
        client.ask(method, params)
        times.append(client.cpu_ms())
    client.call("begin_session", {"role": "WINDSURF"})
    times.append(client.cpu_ms())
    client.ask("tools/call", {"name": "read_file", "arguments": {"path": 5}})
    times.append(client.cpu_ms() - times[-1])
    client.close()
    return tuple(times)


def measure_start(ours: list[str], theirs: list[str], environment: dict[str, str]) -> None:
    """Print the time from the start to the opening answers."""
    times: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
    for _ in range(ROUNDS):
        for name, command in (("ours", ours), ("theirs", theirs)):
            client = Client(command, environment)
            times[name].append(client.open())
            client.close()
    for index, label in enumerate(("spawn to `initialize`", "spawn to `tools/list`")):
        mine, other = (
            statistics.median(opening[index] for opening in times[name]) * 1000 for name in ("ours", "theirs")
        )
        print(f"| {label} | {mine:.0f} ms | {other:.0f} ms | {mine / other:.2f} | 0.30 |")


def measure_reads(ours: list[str], theirs: list[str], environment: dict[str, str], root: Path) -> None:
    """Print the time of a small read, recorded by Kaiza, not by the other server."""
    mine, other = Client(ours, environment), Client(theirs, environment)
    for client in (mine, other):
        client.open()
    mine.call("begin_session", {"role": "WINDSURF"})
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(ROUNDS):
        times["ours"].append(statistics.median(mine.time_calls("read_file", {"path": "small.txt"}, CALLS)))
        path = str(root / "small.txt")
        times["theirs"].append(statistics.median(other.time_calls("read_text_file", {"path": path}, CALLS)))
    ratio = statistics.median(a / b for a, b in zip(times["ours"], times["theirs"], strict=True))
    mine_us, other_us = (statistics.median(times[name]) * 1e6 for name in ("ours", "theirs"))
    print(f"| `read_file` of 1 KB, recorded, p50 | {mine_us:.0f} us | {other_us:.0f} us | {ratio:.2f} | 1.00 |")
    mine.close()
    other.close()


def measure_memory(ours: list[str], environment: dict[str, str]) -> None:
    """Print the resident memory after MEMORY_CALLS calls."""
    client = Client(ours, environment)
    client.open()
    client.call("begin_session", {"role": "WINDSURF"})
    client.time_calls("read_file", {"path": "small.txt"}, MEMORY_CALLS // 10)
    early = client.resident_mb()
    client.time_calls("read_file", {"path": "small.txt"}, MEMORY_CALLS - MEMORY_CALLS // 10)
    final = client.resident_mb()
    print(
        f"| resident after {MEMORY_CALLS} calls (after {MEMORY_CALLS // 10}) | {final} MB ({early} MB) | | | 120 MB |"
    )
    client.close()


if __name__ == "__main__":
    main()
