"""Measure the record: appending, many processes at once, and verifying; every figure beside its bare floor.

    uv run python benchmarks/audit_log.py [--records 1000000] [--rounds 15]

Rounds are interleaved, so that a busy machine slows both sides; ratios are what counts. Prints a Markdown table.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kaiza.domain import record
from kaiza.store.audit_log import AuditLog
from kaiza.store.verify import verify

Work = Callable[[], object]
Rows = Iterator[tuple[str, str, float | None, str]]
CALL = {
    "timestamp": "2026-11-18T09:00:00.000Z",
    "request_id": "0193b1c2-7d3e-7a10-9c55-3f0e6a1b2c3d",
    "session_id": "3f2b1c00-0000-4000-8000-000000000001",
    "role": "WINDSURF",
    "workspace_root": "/home/someone/projects/thing",
    "tool_name": "read_file",
    "outcome": "ok",
    "arguments": {"path": "src/app/module.py", "max_lines": 200},
    "duration_ms": 3,
    "client": "claude-code/2.1.7",
}
SECONDS = 3.0


def body() -> dict[str, Any]:
    return record.compose("call", **CALL)


def workspace(parent: str, name: str) -> Path:
    root = Path(parent) / name
    (root / "audit").mkdir(parents=True)
    return root


def filled(root: Path, count: int) -> None:
    link = record.GENESIS
    with (root / "audit" / "audit-log.jsonl").open("wb") as log:
        for seq in range(1, count + 1):
            line, whole = record.seal(body(), seq, link)
            link = whole["entry_hash"]
            log.write(line)


def timed(work: Work, count: int) -> float:
    spent = []
    for _ in range(count):
        begin = time.perf_counter()
        work()
        spent.append(time.perf_counter() - begin)
    return statistics.median(spent) * 1e6


def bare(path: Path | str) -> Work:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    line, _ = record.seal(body(), 1, record.GENESIS)

    def write() -> None:
        os.write(descriptor, line)
        os.fdatasync(descriptor)

    return write


def long_against_empty(parent: str, records: int, rounds: int) -> Rows:
    empty, full = workspace(parent, "empty"), workspace(parent, "full")
    filled(full, records)
    logs = [AuditLog(str(root), follow=lambda _: None) for root in (empty, full)]
    for log in logs:
        log.append(body, durable=False)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    spent = [[timed(lambda log=log: log.append(body, durable=False), 500) for log in logs] for _ in range(rounds)]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    for log in logs:
        log.close()
    short, long = (statistics.median(column) for column in zip(*spent, strict=True))
    ratio = statistics.median(long / short for short, long in spent)
    figures = f"{long:.1f} / {short:.1f} µs"
    yield f"append, {records:,} records in the log against an empty one", figures, ratio, "≤ 1.1"
    yield "memory grown meanwhile", f"{grown / 1024:.1f} MB", None, "flat"


def durable_against_bare(parent: str, rounds: int) -> Rows:
    root = workspace(parent, "durable")
    log = AuditLog(str(root), follow=lambda _: None)
    made = body()
    log.append(lambda: made, durable=True)
    floor = bare(root / "bare")
    works = lambda: log.append(lambda: made, durable=True), floor, lambda: log.append(body, durable=True), floor
    turns = [tuple(timed(work, 1) for work in works) for _ in range(100 * rounds)]
    log.close()
    ours, theirs, composed, also_theirs = (statistics.median(column) for column in zip(*turns, strict=True))
    figures = f"{ours:.0f} / {theirs:.0f} µs"
    yield "durable append p50 against bare write + fdatasync, in turns", figures, ours / theirs, "≤ 1.3"
    figures = f"{composed:.0f} / {also_theirs:.0f} µs"
    yield "the same, and the record is composed in that time, too", figures, composed / also_theirs, ""


def appending(root: str, kind: str, begin: float) -> int:
    log = AuditLog(root, follow=lambda _: None)
    made = body()
    log.append(lambda: made, durable=True)
    if kind == "report":
        return counted(lambda: log.report(made, durable=True), begin)
    return counted(lambda: log.append(lambda: made, durable=True), begin)


def counted(work: Work, begin: float) -> int:
    while time.time() < begin:
        work()
    count, end = 0, begin + SECONDS
    while time.time() < end:
        work()
        count += 1
    return count


def child(kind: str, place: str, begin: float) -> None:
    print(counted(bare(f"{place}/{os.getpid()}"), begin) if kind == "bare" else appending(place, kind, begin))


def eight(kind: str, place: Path) -> list[int]:
    begin = str(time.time() + 1.5)
    command = [sys.executable, __file__, "--child", kind, str(place), begin]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    return [int(process.communicate()[0]) for process in running]


def eight_against_eight(parent: str, rounds: int) -> Rows:
    turns = [
        {kind: eight(kind, workspace(parent, f"eight {kind} {turn}")) for kind in ("report", "append", "bare")}
        for turn in range(max(3, rounds // 3))
    ]
    for kind, label, bar in (
        ("report", "eight processes, one log, against eight bare on own files", "≥ 0.5"),
        ("append", "the same, and each follows what the others wrote, as before a change", ""),
    ):
        ours, theirs = (statistics.median(sum(turn[one]) / SECONDS for turn in turns) for one in (kind, "bare"))
        ratios = sorted(sum(turn[kind]) / sum(turn["bare"]) for turn in turns)
        figures = f"{ours:.0f} / {theirs:.0f} a second; {ratios[0]:.2f} to {ratios[-1]:.2f}"
        yield label, figures, statistics.median(ratios), bar
        fair = statistics.median(min(turn[kind]) / max(turn[kind]) for turn in turns)
        yield "slowest of the eight against the fastest", "", fair, bar
    for root in Path(parent).glob("eight [ar]*"):
        assert verify(str(root)).verdict == "intact"


def verifying(parent: str, rounds: int) -> Rows:
    root = Path(parent) / "full"
    spent = []
    for _ in range(max(3, rounds // 5)):
        begin = time.perf_counter()
        found = verify(str(root))
        spent.append(found.records / (time.perf_counter() - begin))
        assert found.verdict == "intact"
    peak = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    yield f"verify {found.records:,} records", f"{statistics.median(spent):,.0f} a second", None, "≥ 300,000 a second"
    yield "memory of it, all processes", f"{peak:.0f} MB", None, "< 100 MB"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--child", nargs=3)
    args = parser.parse_args()
    if args.child:
        child(args.child[0], args.child[1], float(args.child[2]))
        return
    with tempfile.TemporaryDirectory() as parent:
        os.environ["XDG_STATE_HOME"] = f"{parent}/state"
        print("| measure | figures | ratio | bar |\n|---|---|---|---|")
        for rows in (
            long_against_empty(parent, args.records, args.rounds),
            durable_against_bare(parent, args.rounds),
            verifying(parent, args.rounds),
            eight_against_eight(parent, args.rounds),
        ):
            for label, figures, ratio, bar in rows:
                print(f"| {label} | {figures} | {f'{ratio:.2f} x' if ratio else ''} | {bar} |", flush=True)


if __name__ == "__main__":
    main()
