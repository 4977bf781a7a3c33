"""Benchmark of the audit log: appending to a long log compared with an empty one, and verifying it.

    uv run python benchmarks/audit_log.py [--records 1000000] [--rounds 15]

Rounds are interleaved, so that load on the machine slows both sides; compare the ratios. Prints a Markdown table.
"""

import argparse
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kaiza.domain.audit import record
from kaiza.store.audit.log import AuditLog
from kaiza.store.audit.verification.verify import verify_log

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


def compose() -> dict[str, Any]:
    return record.new_body("call", **CALL)


def make_workspace(parent: str, name: str) -> Path:
    root = Path(parent) / name
    (root / "audit").mkdir(parents=True)
    return root


def fill_log(root: Path, count: int) -> None:
    link = record.GENESIS
    with (root / "audit" / "audit-log.jsonl").open("wb") as log:
        for seq in range(1, count + 1):
            line, written = record.serialize_and_hash(compose(), seq, link)
            link = written.entry_hash
            log.write(line)


def median_microseconds(work: Work, count: int) -> float:
    seconds = []
    for _ in range(count):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds) * 1e6


def compare_append(parent: str, records: int, rounds: int) -> Rows:
    empty, full = make_workspace(parent, "empty"), make_workspace(parent, "full")
    fill_log(full, records)
    logs = [AuditLog(str(root), follow=lambda _: None) for root in (empty, full)]
    for log in logs:
        log.append(compose, durable=False)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = [
        [median_microseconds(lambda log=log: log.append(compose, durable=False), 500) for log in logs]
        for _ in range(rounds)
    ]
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    for log in logs:
        log.close()
    short, long = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(long / short for short, long in times)
    figures = f"{long:.1f} / {short:.1f} µs"
    yield f"append, {records:,} records in the log against an empty one", figures, ratio, "≤ 1.1"
    yield "memory growth during it", f"{growth / 1024:.1f} MB", None, "flat"


def measure_verification(parent: str, rounds: int) -> Rows:
    root = Path(parent) / "full"
    rates = []
    for _ in range(max(3, rounds // 5)):
        begin = time.perf_counter()
        found = verify_log(str(root))
        rates.append(found.records / (time.perf_counter() - begin))
        assert found.verdict == "intact"
    peak = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    yield f"verify {found.records:,} records", f"{statistics.median(rates):,.0f} a second", None, "≥ 300,000 a second"
    yield "memory during it, all processes", f"{peak:.0f} MB", None, "< 100 MB"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as parent:
        os.environ["XDG_STATE_HOME"] = f"{parent}/state"
        print("| measure | figures | ratio | limit |\n|---|---|---|---|")
        for rows in (
            compare_append(parent, args.records, args.rounds),
            measure_verification(parent, args.rounds),
        ):
            for label, figures, ratio, bar in rows:
                print(f"| {label} | {figures} | {f'{ratio:.2f} x' if ratio else ''} | {bar} |", flush=True)


if __name__ == "__main__":
    main()
