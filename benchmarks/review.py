"""Benchmark of `kaiza review --json` and `kaiza diff`: one session of 1,000 calls out of a long log.

    uv run python benchmarks/review.py [--records 1000000] [--calls 1000] [--rounds 5]

The session is in the middle of the log. The log was verified before, as a server does in the background. Prints a
Markdown table of medians, with the fastest and the slowest run.
"""

import argparse
import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kaiza.app import App
from kaiza.domain.audit import record
from kaiza.domain.caps import Caps
from kaiza.store import human_decisions
from kaiza.store.disk import state_dir
from kaiza.store.trust import binding
from kaiza.store.workspace import Workspace

PLAN = """---
kaiza_plan: 1
plan_id: PLAN-1
title: Everything
status: {status}
author: ANTIGRAVITY
created: "2026-01-01T00:00:00Z"
scope: {{modify: ["src/**"], create: ["src/**"]}}
---
"""
CHANGED_EVERY = 5
LINES = 200


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--calls", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="keep the workspace and print where it is")
    args = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="kaiza-bench-", dir=Path.cwd()))
    os.environ["XDG_STATE_HOME"] = str(directory / "state")
    try:
        session_id, root = make_log(directory / "project", args.records, args.calls)
        if args.keep:
            print(f"XDG_STATE_HOME={directory}/state {root} {session_id}")
        print("| command | wall | CPU | memory |\n|---|---|---|---|")
        for words in (
            ["review", "--session", session_id, "--json"],
            ["review", "--session", session_id, "--markdown"],
            ["review", "--last", "--json"],
            ["review", "--plan", "PLAN-1", "--json"],
            ["diff", "--session", session_id, "--stat"],
        ):
            row(words, [measure(root, words) for _ in range(args.rounds)])
    finally:
        if not args.keep:
            shutil.rmtree(directory)


def make_log(root, records, calls):
    """A log with one real session in the middle; the session's id and the root."""
    for name in ("plans", "audit", "src"):
        (root / name).mkdir(parents=True)
    root = root.resolve()
    binding.adopt(str(root), state_dir.path_of(str(root), create=True), 0)
    pad(root, (records - calls) // 2)
    session_id = play_session(root, calls)
    pad(root, (records - calls) // 2)
    settle(root)
    return session_id, root


def pad(root, count):
    """Append records of other sessions, 1,000 calls each."""
    log = root / "audit/audit-log.jsonl"
    last = last_line(log) if log.exists() else b""
    link = last[-66:-2].decode() if last else record.GENESIS
    seq = 0 if not last else int(last.split(b'"seq":')[1].split(b",")[0])
    with log.open("ab") as file:
        for number in range(count):
            seq += 1
            line, written = record.serialize_and_hash(filler(seq, number // 1000), seq, link)
            link = written.entry_hash
            file.write(line)


def last_line(log):
    """The last line. The log is not read whole: memory of this process would count as that of the command it starts."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - (1 << 18)))
        return file.read().splitlines()[-1]


def filler(seq, session):
    return record.new_body(
        "call",
        timestamp="2026-11-18T09:00:00.000Z",
        request_id=f"0193b1c2-7d3e-7a10-9c55-{seq:012x}",
        session_id=f"3f2b1c00-0000-4000-8000-{session:012x}",
        role="WINDSURF",
        workspace_root="/home/someone/projects/thing",
        tool_name="read_file",
        outcome="ok",
        arguments={"path": f"src/app/module_{seq % 977}.py", "max_lines": 200},
        duration_ms=3,
        client="claude-code/2.1.7",
    )


def play_session(root, calls):
    for status in ("DRAFT", "APPROVED"):
        (root / "plans/PLAN-1.md").write_text(PLAN.format(status=status))
        settle(root)
    plan_hash = hashlib.sha256((root / "plans/PLAN-1.md").read_bytes()).hexdigest()
    app = App([str(root)])
    session_id = app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
    known = {}
    for number in range(calls - 2):
        if number % CHANGED_EVERY:
            app.call("read_file", {"path": "src/0.py"})
            continue
        path = f"src/{number // CHANGED_EVERY % 40}.py"
        content = "".join(f"value_{line} = {number if line % 20 == number % 20 else line}\n" for line in range(LINES))
        expected = {"expected_hash": known[path]} if path in known else {}
        outcome = app.call("write_file", {"path": path, "content": content, "plan_hash": plan_hash, **expected})
        if outcome.envelope:
            raise SystemExit(outcome.envelope)
        known[path] = outcome.output["after_hash"]
    app.call("end_session", {})
    app.close()
    return session_id


def settle(root):
    """Verify the log and save what the next process need not read again."""
    workspace = Workspace(str(root), Caps())
    human_decisions.catch_up(workspace)
    workspace.look_at_plans()
    while workspace.is_recording() and workspace.verification_progress(1) is not None:
        pass
    workspace.close(human_decisions.current_timestamp())


def measure(root, words):
    """Wall and CPU seconds, and the largest resident memory, of one command."""
    begun = time.perf_counter()
    with subprocess.Popen([sys.executable, "-m", "kaiza", *words], cwd=root, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{words} ended with {process.returncode}")
    return time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def row(words, runs):
    wall, cpu, memory = zip(*runs, strict=True)
    name = " ".join(word if len(word) < 30 else "ID" for word in words)
    print(
        f"| `kaiza {name}` | {statistics.median(wall):.2f} s ({min(wall):.2f} to {max(wall):.2f}) "
        f"| {statistics.median(cpu):.2f} s | {max(memory):.0f} MB |",
        flush=True,
    )


if __name__ == "__main__":
    main()
