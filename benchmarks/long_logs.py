"""Benchmark of long logs without an index: `begin_session` and `kaiza status`, the first time and after.

    uv run python benchmarks/long_logs.py [--records 10000 100000 1000000] [--rounds 3]

Before each first time the index is deleted. The lock's longest hold is what another process sees that asks for it every
millisecond, from `begin_session` until the log is read. Prints a Markdown table of medians with their spread.
"""

import argparse
import fcntl
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from servers import Server

from kaiza.domain.audit import record
from kaiza.store.audit.reader import last_line
from kaiza.store.disk import state_dir

SESSION_RECORDS = 1000
PATHS = 5000


def compose_call(seq, session_id, tool="read_file", **members):
    changes = [
        {
            "path": f"src/{seq % PATHS}.py",
            "source": None,
            "operation": "modify",
            "before_hash": "0" * 64,
            "after_hash": "1" * 64,
            "size": 9,
            "lines_added": 1,
            "lines_removed": 1,
            "mode": None,
        }
    ]
    defaults = {
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
        "request_id": f"request-{seq}",
        "session_id": session_id,
        "role": "WINDSURF",
        "workspace_root": "/home/someone/projects/thing",
        "tool_name": tool,
        "outcome": "ok",
        "arguments": {"path": f"src/{seq % PATHS}.py", "max_lines": 200},
        "changes": changes if tool == "edit_file" else [],
        "plan_id": "PLAN-1" if tool == "edit_file" else None,
        "duration_ms": 3,
        "client": "claude-code/2.1.7",
    }
    return defaults | members


def compose_records(count):
    """Members of records as agents leave them: sessions, half of them ended, one call in twenty a change."""
    for seq in range(count):
        session_id = f"00000000-0000-4000-8000-{seq // SESSION_RECORDS:012d}"
        place = seq % SESSION_RECORDS
        if place == 0:
            yield "call", compose_call(seq, session_id, "begin_session")
        elif place == SESSION_RECORDS - 1 and (seq // SESSION_RECORDS) % 2:
            yield "call", compose_call(seq, session_id, "end_session")
        elif place % 20 in (1, 2):
            members = compose_call(seq - place % 20, session_id, "edit_file")
            yield ("intent", members | {"outcome": None}) if place % 20 == 1 else ("call", members)
        else:
            yield "call", compose_call(seq, session_id)


def make_workspace(parent, count):
    """A workspace that a server has set up here, and whose log then grew to this many records."""
    root = Path(parent) / f"workspace-{count}"
    for name in ("plans", "audit"):
        (root / name).mkdir(parents=True)
    (root / "a.txt").write_text("x" * 1000)
    Server(root, os.environ["XDG_STATE_HOME"]).close()
    path = root / "audit/audit-log.jsonl"
    with path.open("rb") as log:
        last = json.loads(last_line(log.fileno(), path.stat().st_size))
    seq, link = last["seq"], last["entry_hash"]
    with path.open("ab") as log:
        for kind, members in compose_records(count - seq):
            seq += 1
            line, written = record.serialize_and_hash(record.new_body(kind, **members), seq, link)
            link = written.entry_hash
            log.write(line)
    return root


def forget_index(root):
    for name in ("index.json", "whole.json"):
        (state_dir.path_of(str(root)) / name).unlink(missing_ok=True)


class LockObserver:
    """Asks for the log's lock over and over, and notes the longest time for which it was held."""

    def __init__(self, root):
        self._descriptor = os.open(root / "audit/audit-log.jsonl", os.O_RDONLY)
        self._stopping = False
        self.longest = 0.0
        self._thread = threading.Thread(target=self._observe)
        self._thread.start()

    def _observe(self):
        free_at = time.perf_counter()
        while not self._stopping:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
                free_at = time.perf_counter()
            except BlockingIOError:
                self.longest = max(self.longest, time.perf_counter() - free_at)
            time.sleep(0.001)

    def stop(self):
        self._stopping = True
        self._thread.join()
        os.close(self._descriptor)


class TimedServer(Server):
    """A server that answered `initialize` before its `begin_session` is timed."""

    def call(self, tool, **arguments):
        begin = time.perf_counter()
        answer = self.ask("tools/call", name=tool, arguments=arguments)
        self.seconds, self.output = time.perf_counter() - begin, answer["structuredContent"]


def measure_begin(root):
    """Seconds to the answer, until all of the log is read, and of the longest hold of its lock; what was verified."""
    observer = LockObserver(root)
    begin = time.perf_counter()
    server = TimedServer(root, os.environ["XDG_STATE_HOME"])
    seconds, checked = server.seconds, server.output["audit"]["checked"]
    server.call("session_status")
    while server.output["state"] is None:
        time.sleep(0.05)
        server.call("session_status")
    read = time.perf_counter() - begin
    observer.stop()
    server.close()
    return seconds, read, observer.longest, checked


def measure_status(root):
    """Seconds by the clock, and of a processor."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "kaiza", "status", "--json"], cwd=root, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def show(values, unit="s", factor=1.0):
    values = [value * factor for value in values]
    return f"{statistics.median(values):.2f} {unit} ({min(values):.2f} to {max(values):.2f})"


def measure(root, count, rounds):
    begins, begins_after, first, after = [], [], [], []
    for _ in range(rounds):
        forget_index(root)
        begins.append(measure_begin(root))
        begins_after.append(measure_begin(root))
        forget_index(root)
        first.append(measure_status(root))
        after.append(measure_status(root))
    yield f"`begin_session`, {count:,} records, no index ({begins[0][3]})", show([row[0] for row in begins]), "2 s"
    yield "until all of it is read, in the background", show([row[1] for row in begins]), ""
    yield "longest hold of the log's lock meanwhile", show([row[2] for row in begins], "ms", 1000), "100 ms"
    yield "`begin_session` after", show([row[0] for row in begins_after]), ""
    yield "`kaiza status`, no index", show([row[0] for row in first]), "10 s"
    yield "the same, CPU", show([row[1] for row in first]), ""
    yield "`kaiza status` after, CPU", show([row[1] for row in after]), "0.3 s"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    print("| measure | figure (spread) | limit |\n|---|---|---|")
    for count in args.records:
        with tempfile.TemporaryDirectory() as parent:
            os.environ["XDG_STATE_HOME"] = f"{parent}/state"
            root = make_workspace(parent, count)
            for row in measure(root, count, args.rounds):
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
