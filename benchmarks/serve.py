"""Kaiza beside the filesystem server of the MCP project, in one interleaved run: start, one small read, memory.

    uv run python benchmarks/serve.py
    uv run python benchmarks/serve.py first

`first` measures Kaiza alone: the processor time from the start to the first tool answer. The rest needs npm; the other
server is installed into a directory of its own under the temporary directory.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

THEIRS = "@modelcontextprotocol/server-filesystem@2026.8.31"
ROUNDS = 9
CALLS = 400
MANY = 10_000
STARTS = 31


class Client:
    """One server process and its pipe."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self.ids = 0

    def ask(self, method: str, params: dict) -> dict:
        """One request, its answer."""
        self.ids += 1
        self.tell({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params})
        return json.loads(self.process.stdout.readline())

    def tell(self, message: dict) -> None:
        """One line."""
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def open(self) -> tuple[float, float]:
        """The opening; seconds from the start to `initialize` and to `tools/list`."""
        told = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", told)
        initialized = time.perf_counter() - self.began
        self.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.ask("tools/list", {})
        return initialized, time.perf_counter() - self.began

    def call(self, name: str, arguments: dict) -> dict:
        """One tool call; its result."""
        answer = self.ask("tools/call", {"name": name, "arguments": arguments})
        if "result" not in answer or answer["result"].get("isError"):
            raise SystemExit(f"{name} failed: {answer}")
        return answer["result"]

    def timed(self, name: str, arguments: dict, times: int) -> list[float]:
        """How long each of so many calls took."""
        taken = []
        for _ in range(times):
            began = time.perf_counter()
            self.call(name, arguments)
            taken.append(time.perf_counter() - began)
        return taken

    def resident(self) -> int:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) // 1024

    def cpu(self) -> float:
        """Milliseconds of processor time so far, user and system, of all threads."""
        clock = (~self.process.pid << 3) | 2  # the kernel's number for the CPU clock of a process
        return time.clock_gettime(clock) * 1000

    def close(self) -> None:
        """End the process."""
        self.process.stdin.close()
        self.process.wait(timeout=10)


def install(where: Path) -> list[str]:
    """The other server's command."""
    entry = where / "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
    if not entry.exists():
        where.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--silent", "--prefix", where, THEIRS], check=True)
    return ["node", str(entry)]


def main() -> None:
    """Print the table."""
    if sys.argv[1:] == ["first"]:
        first_answer()
        return
    node = install(Path(tempfile.gettempdir()) / "kaiza-bench-node")
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "project")
        for name in ("plans", "audit"):
            (root / name).mkdir(parents=True)
        (root / "small.txt").write_text(("y" * 31 + "\n") * 32)
        environment = {**os.environ, "XDG_STATE_HOME": str(Path(place, "state"))}
        ours = [sys.executable, "-m", "kaiza", "serve", "--workspace", str(root)]
        theirs = [*node, str(root)]
        begin(ours, theirs, environment)
        reads(ours, theirs, environment, root)
        memory(ours, environment)


def first_answer() -> None:
    """Processor time from the start to the opening and to the first tool answer, each in a fresh workspace."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    taken: list[tuple[float, ...]] = []
    for _ in range(STARTS + 1):
        with tempfile.TemporaryDirectory() as place:
            taken.append(start_once(Path(place), environment))
    steps = zip(*taken[1:], strict=True)  # the first start compiles what has changed
    for name, found in zip(("`initialize`", "`tools/list`", "the answer of `begin_session`"), steps, strict=True):
        figure = f"{statistics.median(found):.0f} ms ({min(found):.0f} to {max(found):.0f})"
        print(f"| CPU from spawn to {name} | {figure} | | | |")


def start_once(place: Path, environment: dict[str, str]) -> tuple[float, ...]:
    """A fresh workspace with the plan that `kaiza init` writes, and one server; its processor time at each answer."""
    root = place / "project"
    root.mkdir()
    kaiza = [sys.executable, "-m", "kaiza"]
    environment = {**environment, "HOME": str(place), "XDG_STATE_HOME": str(place / "state")}
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*kaiza, "init", "--yes", str(root)], env=environment, check=True, **quiet)
    client = Client([*kaiza, "serve", "--workspace", str(root)], environment)
    told = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    found = []
    for method, params in (("initialize", told), ("tools/list", {})):
        client.ask(method, params)
        found.append(client.cpu())
    client.call("begin_session", {"role": "WINDSURF"})
    found.append(client.cpu())
    client.close()
    return tuple(found)


def begin(ours: list[str], theirs: list[str], environment: dict[str, str]) -> None:
    """Spawn to the opening answers."""
    taken: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
    for _ in range(ROUNDS):
        for name, command in (("ours", ours), ("theirs", theirs)):
            client = Client(command, environment)
            taken[name].append(client.open())
            client.close()
    for index, what in enumerate(("spawn to `initialize`", "spawn to `tools/list`")):
        mine, other = (statistics.median(one[index] for one in taken[name]) * 1000 for name in ("ours", "theirs"))
        print(f"| {what} | {mine:.0f} ms | {other:.0f} ms | {mine / other:.2f} | 0.30 |")


def reads(ours: list[str], theirs: list[str], environment: dict[str, str], root: Path) -> None:
    """One small read, recorded, against one that is not."""
    mine, other = Client(ours, environment), Client(theirs, environment)
    for client in (mine, other):
        client.open()
    mine.call("begin_session", {"role": "WINDSURF"})
    taken: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(ROUNDS):
        taken["ours"].append(statistics.median(mine.timed("read_file", {"path": "small.txt"}, CALLS)))
        path = str(root / "small.txt")
        taken["theirs"].append(statistics.median(other.timed("read_text_file", {"path": path}, CALLS)))
    ratio = statistics.median(a / b for a, b in zip(taken["ours"], taken["theirs"], strict=True))
    mine_us, other_us = (statistics.median(taken[name]) * 1e6 for name in ("ours", "theirs"))
    print(f"| `read_file` of 1 KB, recorded, p50 | {mine_us:.0f} us | {other_us:.0f} us | {ratio:.2f} | 1.00 |")
    mine.close()
    other.close()


def memory(ours: list[str], environment: dict[str, str]) -> None:
    """Resident memory after many calls."""
    client = Client(ours, environment)
    client.open()
    client.call("begin_session", {"role": "WINDSURF"})
    client.timed("read_file", {"path": "small.txt"}, MANY // 10)
    early = client.resident()
    client.timed("read_file", {"path": "small.txt"}, MANY - MANY // 10)
    print(f"| resident after {MANY} calls (after {MANY // 10}) | {client.resident()} MB ({early} MB) | | | 120 MB |")
    client.close()


if __name__ == "__main__":
    main()
