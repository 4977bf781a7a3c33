"""Compare this version with another one, side by side: start, first answer, a read, a change, the log, a review.

    uv run python benchmarks/versions.py OTHER/.venv/bin/python [--rounds 15] [--records 10000]

OTHER is a checkout of the other version with its own environment. Prints a Markdown table of medians, with ranges. CPU
is the time that all threads of the server ran between the request and its answer; of whole processes their user and
system time.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLAN = """---
kaiza_plan: 1
plan_id: PLAN-1
title: A plan
status: DRAFT
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
approved_by: null
approved_at: null
scope: {create: ["src/**"], modify: ["src/**"]}
---
# Why
"""


class Server:
    """A server process of one version over stdio, with one request at a time."""

    def __init__(self, python, root, state):
        self.process = subprocess.Popen(
            [python, "-m", "kaiza", "serve", "--workspace", str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            env={**os.environ, "XDG_STATE_HOME": str(state)},
        )
        client = {"name": "bench", "version": "1"}
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
        self.ask("tools/list")

    def ask(self, method, **params):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]

    def call(self, tool, **arguments):
        answer = self.ask("tools/call", name=tool, arguments=arguments)
        assert not answer.get("isError"), answer
        return answer

    def cpu_seconds(self):
        # The clock that clock_getcpuclockid(3) returns for a process; Python has no call for it.
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def measure(self, tool, **arguments):
        """Wall and CPU milliseconds of one call."""
        cpu, started = self.cpu_seconds(), time.perf_counter()
        self.call(tool, **arguments)
        return (time.perf_counter() - started) * 1000, (self.cpu_seconds() - cpu) * 1000

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0


class Version:
    """One version with a workspace and a state directory of its own."""

    def __init__(self, python, directory, records):
        self.python, self.root, self.state = python, directory / "workspace", directory / "state"
        for name in ("plans", "audit", "src"):
            (self.root / name).mkdir(parents=True)
        (self.root / "a.txt").write_text("x")
        plan = self.root / "plans" / "PLAN-1.md"
        plan.write_text(PLAN)
        server = self.start()
        server.call("begin_session", role="WINDSURF")
        server.call("list_plans")
        plan.write_text(PLAN.replace("DRAFT", "APPROVED"))
        self.plan_hash = hashlib.sha256(plan.read_bytes()).hexdigest()
        for _ in range(records):
            server.call("read_file", path="a.txt")
        server.close()

    def start(self):
        return Server(self.python, self.root, self.state)

    def measure_begin(self):
        server = self.start()
        figures = server.measure("begin_session", role="WINDSURF")
        server.close()
        return figures

    def run(self, *command):
        """Wall and CPU milliseconds of a whole process."""
        started = time.perf_counter()
        environment = {**os.environ, "XDG_STATE_HOME": str(self.state)}
        process = subprocess.Popen(
            [self.python, *command], cwd=self.root, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, command
        return (time.perf_counter() - started) * 1000, (used.ru_utime + used.ru_stime) * 1000

    def measure_start(self):
        """From the start of the process to its answer to `tools/list`."""
        started = time.perf_counter()
        server = self.start()
        figures = (time.perf_counter() - started) * 1000, server.cpu_seconds() * 1000
        server.close()
        return figures

    def measure_first_answer(self):
        """From the start of the process to the answer of its first tool call."""
        started = time.perf_counter()
        server = self.start()
        server.call("begin_session", role="WINDSURF")
        figures = (time.perf_counter() - started) * 1000, server.cpu_seconds() * 1000
        server.close()
        return figures

    def measure_reads(self, count):
        server = self.start()
        server.call("begin_session", role="WINDSURF")
        for _ in range(20):  # the first loads what the tool needs, and the others find the log read
            server.call("read_file", path="a.txt")
        # The mean of all: the kernel may charge the CPU time of one short call to another.
        cpu, started = server.cpu_seconds(), time.perf_counter()
        for _ in range(count):
            server.call("read_file", path="a.txt")
        figures = (time.perf_counter() - started) * 1000 / count, (server.cpu_seconds() - cpu) * 1000 / count
        server.close()
        return figures

    def measure_reading_log(self):
        script = "from kaiza.store.audit.reader import read_records; import os; "
        return self.run("-c", f"{script}assert sum(1 for _ in read_records(os.getcwd())) > 0")

    def measure_verification(self):
        return self.run("-m", "kaiza", "audit", "verify")

    def measure_review(self):
        return self.run("-m", "kaiza", "review", "--json")

    def measure_changes(self, count):
        server = self.start()
        server.call("begin_session", role="WINDSURF")
        server.call("write_file", path="src/first.txt", content="x\n", plan_hash=self.plan_hash)
        cpu, started = server.cpu_seconds(), time.perf_counter()
        for number in range(count):
            path = f"src/{time.time_ns()}-{number}.txt"
            server.call("write_file", path=path, content="x\n", plan_hash=self.plan_hash)
        figures = (time.perf_counter() - started) * 1000 / count, (server.cpu_seconds() - cpu) * 1000 / count
        server.close()
        return figures


def row(name, one, other):
    cells = []
    for column, unit in ((0, "wall"), (1, "CPU")):
        mine, theirs = ([figures[column] for figures in side] for side in (one, other))
        ratio = statistics.median(mine) / statistics.median(theirs)
        cells.append(
            f"{unit} {statistics.median(mine):.2f} ms ({min(mine):.2f} to {max(mine):.2f}), "
            f"other {statistics.median(theirs):.2f} ms ({min(theirs):.2f} to {max(theirs):.2f}), ratio {ratio:.2f}"
        )
    print(f"| {name} | {cells[0]} | {cells[1]} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("other")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--records", type=int, default=10_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as parent:
        both = []
        for name, python in (("this", sys.executable), ("other", args.other)):
            (Path(parent) / name).mkdir()
            both.append(Version(python, Path(parent) / name, args.records))
        print("| measure | wall | CPU |\n|---|---|---|")
        for name, measure in (
            ("start", Version.measure_start),
            ("first tool answer", Version.measure_first_answer),
            ("begin_session", Version.measure_begin),
            ("read_file", lambda version: version.measure_reads(200)),
            ("reading the log", Version.measure_reading_log),
            ("audit verify", Version.measure_verification),
            ("write_file", lambda version: version.measure_changes(50)),
            ("review --json", Version.measure_review),
        ):
            pairs = [[measure(version) for version in both] for _ in range(args.rounds)]
            row(name, *zip(*pairs, strict=True))


if __name__ == "__main__":
    main()
