"""How long patches take: twice the hunks at most 2.2 times the time, and 100 files against `git apply`."""

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


def best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        gc.collect()
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


def one_file(hunks: int) -> tuple[bytes, bytes]:
    text = [b"--- a/f\n+++ b/f\n"]
    before = []
    for number in range(hunks):
        first = number * 8 + 1
        lines = [b"line %d\n" % line for line in range(first, first + 8)]
        before += lines
        text.append(b"@@ -%d,3 +%d,3 @@\n %s-%s+x\n %s" % (first, first, lines[0], lines[1], lines[2]))
    return b"".join(text), b"".join(before)


def whole(text: bytes, before: bytes) -> None:
    files = patch.parse(text)
    patch.check_with_unidiff(text, files)
    for file in files:
        patch.apply_file_patch(file, before)


def linear() -> dict[str, float]:
    small, large = (one_file(hunks) for hunks in (10_000, 20_000))
    times = best(lambda: whole(*small)), best(lambda: whole(*large))
    return {"10000_hunks_s": times[0], "20000_hunks_s": times[1], "ratio": times[1] / times[0], "bar": 2.2}


def many_files() -> tuple[bytes, bytes, bytes]:
    before = b"".join(b"line %d\n" % line for line in range(LINES))
    after = before.replace(b"line 50\n", b"line fifty\n").replace(b"line 150\n", b"line 150\nand one\n")
    hunks = b"@@ -48,7 +48,7 @@\n line 47\n line 48\n line 49\n-line 50\n+line fifty\n line 51\n line 52\n line 53\n"
    hunks += b"@@ -149,6 +149,7 @@\n line 148\n line 149\n line 150\n+and one\n line 151\n line 152\n line 153\n"
    return before, after, b"".join(b"--- a/f%d\n+++ b/f%d\n%s" % (at, at, hunks) for at in range(FILES))


def against_git() -> dict[str, float]:
    before, after, text = many_files()

    def ours() -> None:
        for file in read(text):
            path = Path(str(file.path))
            content = patch.apply_file_patch(file, path.read_bytes(), path.stat().st_mode)
            path.with_name(path.name + "~").write_bytes(content or b"")
            path.with_name(path.name + "~").rename(path)

    def pure() -> None:
        for file in read(text):
            patch.apply_file_patch(file, before)

    def git() -> None:
        subprocess.run(["git", "apply"], input=text, check=True)

    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        times = {name: fresh(work, before, after) for name, work in (("ours", ours), ("git_apply", git))}
        os.chdir("/")
    return {
        "parse_and_apply_s": best(pure),
        "with_files_s": times["ours"],
        "git_apply_s": times["git_apply"],
        "ratio": times["ours"] / times["git_apply"],
        "bar": 1.0,
    }


def read(text: bytes) -> tuple[patch.FilePatch, ...]:
    files = patch.parse(text)
    patch.check_with_unidiff(text, files)
    return files


def fresh(work: Callable[[], None], before: bytes, after: bytes) -> float:
    times = []
    for _ in range(ROUNDS):
        for at in range(FILES):
            Path(f"f{at}").write_bytes(before)
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
        if any(Path(f"f{at}").read_bytes() != after for at in range(FILES)):
            raise AssertionError
    return min(times)


if __name__ == "__main__":
    figures = {"linear": linear(), "against_git": against_git()}
    print(json.dumps(figures, indent=2))
    sys.exit(any(part["ratio"] > part["bar"] for part in figures.values()))
