"""Benchmark the manifest on a large workspace: what a session's begin and end cost, and what reads notice of it.

    uv run python benchmarks/manifest.py [--files 100000] [--rounds 3]

CPU is user and system time of all threads of the process, wall beside it. Prints a Markdown table.
"""

import argparse
import os
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from kaiza.app import App

PER_DIRECTORY = 20
READS = 400


class Watch:
    """CPU and wall time since it was made."""

    def __init__(self):
        self.cpu, self.wall = time.process_time(), time.perf_counter()

    def stop(self):
        return time.process_time() - self.cpu, time.perf_counter() - self.wall


def make_tree(root, files):
    for name in ("plans", "audit"):
        (root / name).mkdir(parents=True)
    (root / "a.txt").write_text("x" * 1000)
    for number in range(files // PER_DIRECTORY):
        directory = root / f"p{number // 500}/m{number // 50 % 10}/d{number}"
        directory.mkdir(parents=True)
        for each in range(PER_DIRECTORY):
            (directory / f"f{each}.py").write_bytes(random.randbytes(20).hex().encode() + b"x = 1\n" * 300)


def read_once(app):
    start = time.perf_counter()
    assert app.call("read_file", {"path": "a.txt"}).output
    return time.perf_counter() - start


def run_session(root, *, reads):
    """Times of one session: its first answer, the whole pass, the hashes, its end; and of reads meanwhile."""
    app = App([str(root)])
    keeper = app.services.workspaces[str(root)].manifest
    watch = Watch()
    session_id = app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
    times = {"answer": watch.stop()}
    pending = keeper.find_pending(session_id)
    if reads:
        times["busy"] = [read_once(app) for _ in range(READS) if not pending.hashed.is_set()]
        pending.hashed.wait()
        times["idle"] = [read_once(app) for _ in range(READS)]
    else:
        pending.written.wait()
        times["seen"] = watch.stop()
        pending.hashed.wait()
        times["hashed"] = watch.stop()
    watch = Watch()
    output = app.call("end_session", {"session_id": session_id}).output
    assert (output["ungoverned_count"], output["manifest"]) == (0, "whole"), output
    times["end"] = watch.stop()
    app.close()
    return times


def show(name, rounds, limit=""):
    cpu, wall = (sorted(each[index] for each in rounds) for index in (0, 1))
    middle = [statistics.median(each) for each in (cpu, wall)]
    spread = f"{cpu[0]:.2f} to {cpu[-1]:.2f}", f"{wall[0]:.2f} to {wall[-1]:.2f}"
    print(f"| {name} | {middle[0]:.2f} s ({spread[0]}) | {middle[1]:.2f} s ({spread[1]}) | {limit} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as parent:
        root = Path(os.path.realpath(parent)) / "workspace"
        make_tree(root, options.files)
        firsts, laters, busy, idle = [], [], [], []
        for number in range(options.rounds):
            # The state of another machine, to which the workspace is new.
            os.environ["XDG_STATE_HOME"] = f"{parent}/state-{number}"
            for name in (".kaiza", "audit"):
                shutil.rmtree(root / name, ignore_errors=True)
            (root / "audit").mkdir()
            firsts.append(run_session(root, reads=False))
            laters.append(run_session(root, reads=False))
            shutil.rmtree(f"{parent}/state-{number}")
            shutil.rmtree(root / ".kaiza")
            shutil.rmtree(root / "audit")
            (root / "audit").mkdir()
            read = run_session(root, reads=True)
            busy += read["busy"]
            idle += read["idle"]
        print(f"| {options.files:,} files | CPU | wall | limit |\n|---|---|---|---|")
        show("`begin_session`, first answer", [each["answer"] for each in firsts])
        show("first whole pass, without hashes", [each["seen"] for each in firsts])
        show("first whole pass, with hashes", [each["hashed"] for each in firsts], "4 s")
        show("a later pass", [each["hashed"] for each in laters], "0.6 s")
        show("`end_session`, nothing changed", [each["end"] for each in laters])
        median = statistics.median(busy) * 1e6, statistics.median(idle) * 1e6
        print(f"| `read_file` of 1 KB during the first pass, p50 | {median[0]:.0f} us, else {median[1]:.0f} us | | |")


if __name__ == "__main__":
    main()
