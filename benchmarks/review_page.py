"""Benchmark of the review page: its size, and how soon a real browser shows it.

    CI=true uv run python benchmarks/review_page.py [--records 50000] [--files 500] [--rounds 5]

Needs npm and Debian's chromium. Prints a Markdown table: medians, with the least and the greatest value.
"""

import argparse
import hashlib
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

TESTS = Path(__file__).parent.parent / "tests"
sys.path[0] = str(TESTS)  # not this directory: its http.py would hide the standard library's

from clients.conftest import _install  # noqa: E402
from review_samples import call, diff_of, file_of, record, sample_report  # noqa: E402

from kaiza.render.html.page import render_review  # noqa: E402


def make_records(count):
    """Records as long as those of a real session: reads, changes and refusals by turns of chance."""
    random.seed(1)
    known = "0" * 64
    for seq in range(1, count + 1):
        path = f"src/pkg{random.randrange(40)}/mod{random.randrange(500)}.py"
        group, tool, outcome = random.choice(
            [("read", "read_file", "ok"), ("change", "edit_file", "ok"), ("refusal", "write_file", "HASH_MISMATCH")]
        )
        row = record(seq, group, tool, path, outcome)
        members = {"arguments": {"path": path}, "cause": None, "changes": [], "client": "claude-code 2.4.1"}
        if group == "change":
            members["arguments"]["content"] = {"sha256": digest(), "length": seq}
            members["changes"] = [
                {"path": path, "operation": "modify", "before_hash": digest(), "after_hash": digest()}
            ]
        members |= {"outcome": outcome, "plan_hash": "b" * 64, "plan_id": "PLAN-0001", "prev_hash": known, "seq": seq}
        members |= {"request_id": digest()[:36], "role": "WINDSURF", "session_id": "a8ef264a", "timestamp": row.at}
        known = members["entry_hash"] = digest()
        yield replace(row, line=json.dumps(members, separators=(",", ":")))


def digest():
    return hashlib.sha256(random.randbytes(8)).hexdigest()


def make_files(count):
    for number in range(count):
        diff = diff_of(*(f"def f{number}_{line}(): return {line}" for line in range(20)))
        yield file_of(f"src/pkg{number % 40}/mod{number}.py", diff, call(9, diff))


def measure(records, files, rounds, folder):
    report = sample_report(records=tuple(make_records(records)), files=tuple(make_files(files)))
    started = time.process_time()
    page = render_review(report).encode()
    seconds = time.process_time() - started
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "review.html"
        path.write_bytes(page)
        command = ["node", str(folder / "page.mjs"), "speed", str(path)]
        seen = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(rounds)]
    spread = {name: describe([each[name] for each in seen]) for name in ("paint", "usable")}
    keys = describe([max(each["keystrokes"]) for each in seen])
    print(
        f"| {records:,} records, {files:,} files | {len(page) / 1e6:.2f} MB | {seconds:.2f} s "
        f"| {spread['paint']} | {spread['usable']} | {keys} |"
    )


def describe(values):
    return f"{statistics.median(values):.0f} ms ({min(values):.0f} to {max(values):.0f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    folder = _install(TESTS / "browser" / "package.json")
    shutil.copy(TESTS / "browser" / "page.mjs", folder)
    print("| page | size | made in (CPU) | first paint | list usable | slowest keystroke |")
    print("|---|---|---|---|---|---|")
    measure(1_000, 50, args.rounds, folder)
    measure(args.records, args.files, args.rounds, folder)


if __name__ == "__main__":
    main()
