"""Benchmark: what grows with plans, files and records, each measurement in a fresh process.

    uv run python benchmarks/growth.py plans|scope|undo|edit [SIZE]

Prints CPU time (all threads) and peak memory. `undo` writes a log of SIZE records, a twentieth of them changes, and
runs the selection of `kaiza undo --plan`.
"""

import argparse
import hashlib
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

SIZES = {"plans": 1_000, "scope": 100_000, "undo": 1_000_000, "edit": 30_000_000}
HEAD = """---
kaiza_plan: 1
plan_id: {0}
title: A plan
status: {1}
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
scope: {{modify: ["**"], create: ["**"]}}
limits: {{files: 12, lines: 800, operations: 120}}
---
# Why
"""


def new_workspace(base):
    os.environ["XDG_STATE_HOME"], os.environ["XDG_CONFIG_HOME"] = f"{base}/state", f"{base}/config"
    root = Path(base, "project")
    for name in ("plans", "audit"):
        (root / name).mkdir(parents=True)
    return root


def approve(root, app):
    """Write a draft, let it be seen, and approve it; the plan's hash."""
    path = root / "plans/PLAN-1.md"
    for status in ("DRAFT", "APPROVED"):
        path.write_text(HEAD.format("PLAN-1", status))
        next(iter(app.services.workspaces.values())).look_at_plans()
    return hashlib.sha256(path.read_bytes()).hexdigest()


def measure(label, act):
    cpu, wall = time.process_time(), time.perf_counter()
    result = act()
    cpu, wall = (time.process_time() - cpu) * 1000, (time.perf_counter() - wall) * 1000
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{label}: {cpu:.1f} ms CPU, {wall:.1f} ms, peak {peak} MB", flush=True)
    return result


def open_app(root):
    from kaiza.app import App  # noqa: PLC0415  its import is not measured

    return App([os.path.realpath(root)])


def plans(root, size):
    for number in range(size):
        (root / f"plans/PLAN-{number}.md").write_text(HEAD.format(f"PLAN-{number}", "DRAFT"))
    app = open_app(root)
    for _ in range(5):
        measure(f"begin_session, {size} plans", lambda: app.call("begin_session", {"role": "WINDSURF"}))
    app.close()


def scope(root, size):
    for number in range(size):
        if number % 1000 == 0:
            directory = root / f"d{number // 1000}"
            directory.mkdir()
        (directory / f"f{number}").touch()
    app = open_app(root)
    plan_hash = approve(root, app)
    app.call("begin_session", {"role": "WINDSURF"})
    for number in range(5):
        change = {"path": f"new{number}", "content": "x\n", "plan_hash": plan_hash}
        label = f"write_file number {number + 1}, {size} files"
        assert measure(label, lambda change=change: app.call("write_file", change)).envelope is None
    app.close()


def undo(root, size):
    from kaiza.boundary.human_undo import UndoneCalls  # noqa: PLC0415  as above

    from kaiza.cli.undo.command import select_records  # noqa: PLC0415  as above
    from kaiza.domain.audit import record  # noqa: PLC0415  as above
    from kaiza.domain.audit.inverse_changes import invert  # noqa: PLC0415  as above
    from kaiza.domain.caps import Caps  # noqa: PLC0415  as above
    from kaiza.store.workspace import Workspace  # noqa: PLC0415  as above

    link, hashes = record.GENESIS, ["0" * 64, "1" * 64]
    with (root / "audit/audit-log.jsonl").open("wb") as log:
        for seq in range(1, size + 1):
            members = {"tool_name": "read_file", "outcome": "ok", "arguments": {"path": "a"}, "session_id": "s"}
            if seq % 20 == 0:
                change = {"path": f"src/{seq % 5000}", "source": None, "operation": "modify", "size": 1, "mode": None}
                change |= {"before_hash": hashes[0], "after_hash": hashes[1], "lines_added": 1, "lines_removed": 1}
                members |= {"tool_name": "write_file", "plan_id": "PLAN-1", "changes": [change]}
            body = record.new_body("call", timestamp="2026-11-18T09:00:00.000Z", request_id=f"{seq:036}", **members)
            line, written = record.serialize_and_hash(body, seq, link)
            link = written.entry_hash
            log.write(line)
    options = argparse.Namespace(request=None, session=None, plan="PLAN-1")
    workspace, calls = Workspace(str(root), Caps()), UndoneCalls()
    measure("before", lambda: None)
    found = measure(f"undo, {size} records", lambda: invert(calls.note(select_records(options, workspace))))
    print(len(found), "paths")


def edit(root, size):
    content = b"first\n" + b"a\n" * size + b"last\n"
    (root / "f").write_bytes(content)
    app = open_app(root)
    plan_hash = approve(root, app)
    app.call("begin_session", {"role": "WINDSURF"})
    edits = [{"old_text": "first", "new_text": "1"}, {"old_text": "last", "new_text": "2"}]
    call = {"path": "f", "expected_hash": hashlib.sha256(content).hexdigest(), "plan_hash": plan_hash, "edits": edits}
    measure("before", lambda: None)
    outcome = measure(f"edit_file, {size} lines", lambda: app.call("edit_file", call))
    print(outcome.envelope or outcome.output["summary"])
    app.close()


if __name__ == "__main__":
    what = sys.argv[1]
    with tempfile.TemporaryDirectory() as base:
        globals()[what](new_workspace(base), int(sys.argv[2]) if len(sys.argv) > 2 else SIZES[what])
