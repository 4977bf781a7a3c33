"""Durable changes beside the same work done bare, in one interleaved run.

    uv run python benchmarks/changes.py [--rounds 15] [--megabytes 100]

Bare means: the same system calls on files of its own, as durable, without plan and rules. Prints a Markdown table.
Making a file costs ext4 ten times as much when many were deleted in the last minutes, here or elsewhere: let it rest.
"""

import argparse
import fcntl
import hashlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from serve import Client, install

from kaiza.app import App
from kaiza.store.disk import atomic_rename

PLAN = """---
kaiza_plan: 1
plan_id: PLAN-1
title: Everything
status: APPROVED
author: ANTIGRAVITY
created: "2026-01-01T00:00:00Z"
scope: {modify: ["w/**"], create: ["w/**"], delete: ["w/**"], move: [{from: "w/**", to: "w/**"}]}
---
"""
PLAN_HASH = hashlib.sha256(PLAN.encode()).hexdigest()
RECORD = b"x" * 900
FILES = 100
WORDS = ("value", "result", "request", "handler", "session", "reader", "index", "length", "offset", "content")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--megabytes", type=int, default=100)
    args = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="kaiza-bench-", dir=Path.cwd()))
    os.environ["XDG_STATE_HOME"] = str(place / "state")
    try:
        print("| measure | Kaiza | bare | ratio | bar |\n|---|---|---|---|---|")
        stage = Stage(place)
        ours, same, less = writes(stage, args.rounds * 20)
        row("durable `write_file` of 8 KB, p50", "1.5", ours, same)
        row("the same, beside six syncs and nothing else", "", ours, less)
        if shutil.which("npm"):
            row("`edit_file` on 1 MB, beside the filesystem server's and the syncs", "1.0", *edits(stage, args.rounds))
        row("`apply_patch` of 100 files, beside `git apply` and its syncs", "1.0", *patches(stage, args.rounds))
        size = args.megabytes << 20
        for name, pair in large(stage, max(3, args.rounds // 5), size).items():
            row(f"{name} {args.megabytes} MB, beside a bare copy, hash and sync", "1.5", *pair)
    finally:
        stage.app.close()
        shutil.rmtree(place)


def row(what, bar, ours, bare):
    ratio = statistics.median(a / b for a, b in zip(ours, bare, strict=True))
    mine, other = statistics.median(ours) * 1e3, statistics.median(bare) * 1e3
    print(f"| {what} | {mine:.2f} ms | {other:.2f} ms | {ratio:.2f} | {bar} |", flush=True)


class Stage:
    def __init__(self, place):
        self.root, self.bare = place / "project", place / "bare"
        for name in ("plans", "audit", "w"):
            (self.root / name).mkdir(parents=True)
        (self.root / "plans/PLAN-1.md").write_text(PLAN)
        self.bare.mkdir()
        self.app = App([os.path.realpath(self.root)])
        self.call("begin_session", role="WINDSURF")
        self.log = os.open(self.bare / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self.anchor = os.open(self.bare / "anchor", os.O_CREAT | os.O_RDWR)

    def call(self, tool, **arguments):
        if tool != "begin_session":
            arguments["plan_hash"] = PLAN_HASH
        outcome = self.app.call(tool, arguments)
        if outcome.envelope:
            raise SystemExit(f"{tool}: {outcome.envelope}")
        return outcome.output

    def record(self):
        os.write(self.log, RECORD)
        os.fdatasync(self.log)

    def locked_record(self):
        """With the log's lock, and the anchor, which is written behind the sync."""
        fcntl.flock(self.log, fcntl.LOCK_EX)
        os.write(self.log, RECORD)
        fcntl.flock(self.log, fcntl.LOCK_UN)
        os.fdatasync(self.log)
        os.pwrite(self.anchor, RECORD[:76], 0)


def timed(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def synced(path, content):
    """A file beside, written and synced."""
    fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.write(fd, content)
    os.fsync(fd)
    os.close(fd)


def sync_directory(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def writes(stage, rounds):
    """Each round writes a text that was never there, as an agent does; both sides make new files for it."""
    ours, same, less = [], [], []
    old = text()
    stage.call("write_file", path="w/f", content=old)
    synced(stage.bare / "f", old.encode())
    for name in ("objects", "journals", "done"):
        (stage.bare / name).mkdir()
    for number in range(rounds):
        new, was = text(), hashlib.sha256(old.encode()).hexdigest()
        ours.append(timed(lambda: stage.call("write_file", path="w/f", content=new, expected_hash=was)))  # noqa: B023
        same.append(timed(lambda: same_calls(stage, new.encode(), f"{number}")))  # noqa: B023
        less.append(timed(lambda: six_syncs(stage, new.encode(), f"{number}-")))  # noqa: B023
        old = new
    return ours, same, less


def text():
    """8 KB of lines like code, none of which was there before."""
    lines = []
    while sum(map(len, lines)) < 8192:
        number = random.randrange(10**6)
        lines.append(
            f"    {random.choice(WORDS)}_{number} = {random.choice(WORDS)}({number}, {random.choice(WORDS)})\n"
        )
    return "".join(lines)


def same_calls(stage, content, name):
    """What a change writes, locks, renames and syncs, in its order; without what it reads, and without a rule."""
    here = stage.bare
    stage.locked_record()
    journal = made(here / "journals" / name, RECORD[:400])
    fcntl.flock(journal, fcntl.LOCK_EX)
    kept = made(here / "objects" / f".{name}", (here / "f").read_bytes()[:3000])
    (here / "objects" / f".{name}").rename(here / "objects" / name)
    new = made(here / "new", content)
    os.fchmod(new, 0o644)
    os.write(journal, RECORD[:24])
    for fd in (kept, new, journal):
        os.fsync(fd)
        os.close(fd)
    sync_directory(here / "objects")
    sync_directory(here / "journals")
    where = os.open(here, os.O_RDONLY | os.O_DIRECTORY)
    atomic_rename.exchange(where, b"new", b"f")
    os.fsync(where)
    os.close(where)
    stage.locked_record()
    (here / "new").unlink()
    (here / "journals" / name).rename(here / "done" / name)


def six_syncs(stage, content, name):
    """Two log syncs, pre-image, journal, new file and its directory; pre-image and journal may lose their names."""
    here = stage.bare
    stage.record()
    synced(here / "objects" / name, (here / "f").read_bytes())
    synced(here / "journals" / name, RECORD)
    synced(here / "new", content)
    (here / "new").rename(here / "f")
    sync_directory(here)
    stage.record()
    (here / "journals" / name).unlink()


def made(path, content):
    """A new file, open."""
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    os.write(fd, content)
    return fd


def edits(stage, rounds):
    """Both through a pipe: one line in the middle of 1 MB; the other side's is followed by the syncs it leaves out."""
    files = {stage.root / "w/big.py": None, stage.bare / "big.py": None}
    begun = "".join(text() for _ in range(128))
    old, new = "    edited = 'old'\n", "    edited = 'new'\n"
    for path in files:
        path.write_text(begun + old + begun)
    node = install(Path(tempfile.gettempdir()) / "kaiza-bench-node")
    mine = Client([sys.executable, "-m", "kaiza", "serve", "--workspace", str(stage.root)], dict(os.environ))
    other = Client([*node, str(stage.bare)], dict(os.environ))
    for client in (mine, other):
        client.open()
    mine.call("begin_session", {"role": "WINDSURF"})
    ours, theirs = [], []
    for number in range(rounds):
        was = hashlib.sha256((stage.root / "w/big.py").read_bytes()).hexdigest()
        told = {"path": "w/big.py", "expected_hash": was, "plan_hash": PLAN_HASH}
        told["edits"] = [{"old_text": old, "new_text": new}]
        asked = {"path": str(stage.bare / "big.py"), "edits": [{"oldText": old, "newText": new}]}
        ours.append(timed(lambda: mine.call("edit_file", told)))  # noqa: B023
        theirs.append(timed(lambda: edit_and_sync(stage, other, asked, number)))  # noqa: B023
        old, new = new, old
    mine.close()
    other.close()
    return ours, theirs


def edit_and_sync(stage, other, asked, number):
    """The other server's edit, with both records, the pre-image and the result on the disk."""
    stage.record()
    path = stage.bare / "big.py"
    synced(stage.bare / "objects" / f"edit{number}", path.read_bytes())
    synced(stage.bare / "journals" / f"edit{number}", RECORD)
    other.call("edit_file", asked)
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    sync_directory(stage.bare)
    stage.record()


def patches(stage, rounds):
    ours, bare = [], []
    for where in (stage.root, stage.bare):
        (where / "w").mkdir(exist_ok=True)
        for number in range(FILES):
            (where / "w" / f"p{number}").write_text("line\n" * 50 + "old\n" + "line\n" * 50)
    forth = "".join(entry(number, "old", "new") for number in range(FILES))
    back = "".join(entry(number, "new", "old") for number in range(FILES))
    for number in range(rounds):
        patch = (forth, back)[number % 2]
        ours.append(timed(lambda: stage.call("apply_patch", patch=patch)))  # noqa: B023
        bare.append(timed(lambda: git_apply(stage, patch)))  # noqa: B023
    return ours, bare


def entry(number, old, new):
    name = f"w/p{number}"
    context = " line\n" * 3
    return f"--- a/{name}\n+++ b/{name}\n@@ -48,7 +48,7 @@\n{context}-{old}\n+{new}\n{context}"


def git_apply(stage, patch):
    """`git apply`, and what it leaves out: both records, pre-images and results on the disk."""
    stage.record()
    for number in range(FILES):
        synced(stage.bare / f"pre{number}", (stage.bare / "w" / f"p{number}").read_bytes())
    subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=stage.bare, check=True)
    for number in range(FILES):
        fd = os.open(stage.bare / "w" / f"p{number}", os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
    sync_directory(stage.bare / "w")
    stage.record()


def large(stage, rounds, size):
    found = {"move": ([], []), "delete": ([], []), "undo the delete of": ([], [])}
    content = os.urandom(1 << 20) * (size >> 20)
    whole = hashlib.sha256(content).hexdigest()
    for number in range(rounds):
        source, there = f"w/big{number}", f"w/moved{number}"
        synced_stream(stage.root / source, content)
        synced_stream(stage.bare / "big", content)
        moved = lambda: stage.call("move_file", source=source, destination=there, expected_hash=whole)  # noqa: E731, B023
        gone = {}
        delete = lambda: gone.update(stage.call("delete_file", path=there, expected_hash=whole))  # noqa: E731, B023
        undo = lambda: stage.call("undo_changes", request_ids=[gone["request_id"]])  # noqa: E731, B023
        for name, work in (("move", moved), ("delete", delete), ("undo the delete of", undo)):
            for side, one in enumerate((work, lambda: copy_hash_sync(stage))):
                warm(stage, content)
                found[name][side].append(timed(one))
        (stage.root / there).unlink()
    return found


def warm(stage, content):
    """Leave as many pages free that the machine has just used: a virtual one takes ten times as long for others."""
    scratch = stage.bare / "scratch"
    scratch.write_bytes(content)
    scratch.unlink()
    (stage.bare / "copy").unlink(missing_ok=True)


def synced_stream(path, content):
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def copy_hash_sync(stage):
    whole = hashlib.sha256()
    with (stage.bare / "big").open("rb") as source, (stage.bare / "copy").open("wb") as target:
        while block := source.read(1 << 20):
            whole.update(block)
            target.write(block)
        target.flush()
        os.fsync(target.fileno())
    sync_directory(stage.bare)


if __name__ == "__main__":
    main()
