"""Benchmark several servers on one workspace: eight of them reading at once, against one alone.

    uv run python benchmarks/servers.py [--rounds 3] [--calls 250]

Every call is recorded in the one log, and every server follows the records of the others. Prints a Markdown table.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path


class Server:
    """A server process over stdio, with one request at a time."""

    def __init__(self, root, state):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kaiza", "serve", "--workspace", str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_STATE_HOME": str(state)},
        )
        client = {"name": "bench", "version": "1"}
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
        self.call("begin_session", role="WINDSURF")

    def ask(self, method, **params):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]

    def call(self, tool, **arguments):
        answer = self.ask("tools/call", name=tool, arguments=arguments)
        assert not answer.get("isError"), answer

    def read_repeatedly(self, calls):
        for _ in range(calls):
            self.call("read_file", path="a.txt")

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0


def calls_per_second(count, calls, *, sync_every):
    """Calls per second that `count` servers answer together."""
    with tempfile.TemporaryDirectory() as parent:
        root = Path(parent) / "workspace"
        for name in ("plans", "audit"):
            (root / name).mkdir(parents=True)
        (root / "a.txt").write_text("x" * 1000)
        if sync_every:
            (root / "kaiza.toml").write_text('[audit]\nsync = "every"\n')
        servers = [Server(root, Path(parent) / "state") for _ in range(count)]
        threads = [threading.Thread(target=server.read_repeatedly, args=(calls,)) for server in servers]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        elapsed = time.perf_counter() - started
        for server in servers:
            server.close()
    return count * calls / elapsed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=250)
    args = parser.parse_args()
    print("| records are synced | eight servers | one | ratio |\n|---|---|---|---|")
    for sync_every in (False, True):
        rounds = [
            [calls_per_second(count, args.calls, sync_every=sync_every) for count in (8, 1)] for _ in range(args.rounds)
        ]
        eight, one = (statistics.median(column) for column in zip(*rounds, strict=True))
        ratio = statistics.median(together / alone for together, alone in rounds)
        label = "each before its answer" if sync_every else "within a second"
        print(f"| {label} | {eight:.0f} calls a second | {one:.0f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
