"""Time patches: 20,000 hunks compared with 10,000 (limit 2.2), and 100 files compared with `git apply` (limit 1.0)."""

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kaiza.domain import patch

ROUNDS = 9
FILES = 100
LINES = 200


def best_seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        gc.collect()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def build_hunks(hunks: int) -> tuple[bytes, bytes]:
    text = [b"--- a/f\n+++ b/f\n"]
    before = []
    for number in range(hunks):
        first = number * 8 + 1
        lines = [b"line %d\n" % line for line in range(first, first + 8)]
        before += lines
        text.append(b"@@ -%d,3 +%d,3 @@\n %s-%s+x\n %s" % (first, first, lines[0], lines[1], lines[2]))
    return b"".join(text), b"".join(before)


def parse_and_apply(text: bytes, before: bytes) -> None:
    files = patch.parse(text)
    patch.check_with_unidiff(text, files)
    for file in files:
        patch.apply_file_patch(file, before)


def measure_hunks() -> dict[str, float]:
    small, large = (build_hunks(hunks) for hunks in (10_000, 20_000))
    times = best_seconds(lambda: parse_and_apply(*small)), best_seconds(lambda: parse_and_apply(*large))
    return {"10000_hunks_s": times[0], "20000_hunks_s": times[1], "ratio": times[1] / times[0], "limit": 2.2}


def build_files_patch() -> tuple[bytes, bytes, bytes]:
    before = b"".join(b"line %d\n" % line for line in range(LINES))
    after = before.replace(b"line 50\n", b"line fifty\n").replace(b"line 150\n", b"line 150\nand one\n")
    hunks = b"@@ -48,7 +48,7 @@\n line 47\n line 48\n line 49\n-line 50\n+line fifty\n line 51\n line 52\n line 53\n"
    hunks += b"@@ -149,6 +149,7 @@\n line 148\n line 149\n line 150\n+and one\n line 151\n line 152\n line 153\n"
    return before, after, b"".join(b"--- a/f%d\n+++ b/f%d\n%s" % (at, at, hunks) for at in range(FILES))


def compare_with_git() -> dict[str, float]:
    before, after, text = build_files_patch()

    def with_kaiza() -> None:
        for file in parse_checked(text):
            path = Path(str(file.path))
            content = patch.apply_file_patch(file, path.read_bytes(), path.stat().st_mode)
            path.with_name(path.name + "~").write_bytes(content or b"")
            path.with_name(path.name + "~").rename(path)

    def in_memory() -> None:
        for file in parse_checked(text):
            patch.apply_file_patch(file, before)

    def with_git() -> None:
        subprocess.run(["git", "apply"], input=text, check=True)

    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        times = {
            name: best_seconds_on_files(work, before, after)
            for name, work in (("kaiza", with_kaiza), ("git_apply", with_git))
        }
        os.chdir("/")
    return {
        "parse_and_apply_s": best_seconds(in_memory),
        "with_files_s": times["kaiza"],
        "git_apply_s": times["git_apply"],
        "ratio": times["kaiza"] / times["git_apply"],
        "limit": 1.0,
    }


def parse_checked(text: bytes) -> tuple[patch.FilePatch, ...]:
    files = patch.parse(text)
    patch.check_with_unidiff(text, files)
    return files


def best_seconds_on_files(work: Callable[[], None], before: bytes, after: bytes) -> float:
    times = []
    for _ in range(ROUNDS):
        for at in range(FILES):
            Path(f"f{at}").write_bytes(before)
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
        if any(Path(f"f{at}").read_bytes() != after for at in range(FILES)):
            raise AssertionError
    return min(times)


if __name__ == "__main__":
    figures = {"linear": measure_hunks(), "against_git": compare_with_git()}
    print(json.dumps(figures, indent=2))
    sys.exit(any(part["ratio"] > part["limit"] for part in figures.values()))
