"""Benchmark: durable changes compared with the same work without Kaiza, in one interleaved run.

    uv run python benchmarks/changes.py [--rounds 15] [--megabytes 100]

"Bare" is the same system calls on separate files, equally durable, without plan and rules. Prints a Markdown table.
ext4 creates a file ten times slower where many were deleted in the last minutes: let the machine rest before.
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

from serve import Client, install_other

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
    directory = Path(tempfile.mkdtemp(prefix="kaiza-bench-", dir=Path.cwd()))
    os.environ["XDG_STATE_HOME"] = str(directory / "state")
    try:
        print("| measure | Kaiza | bare | ratio | limit |\n|---|---|---|---|---|")
        stage = Stage(directory)
        ours, same_calls, syncs_only = time_writes(stage, args.rounds * 20)
        row("durable `write_file` of 8 KB, p50", "1.5", ours, same_calls)
        row("the same, beside six syncs and nothing else", "", ours, syncs_only)
        if shutil.which("npm"):
            row(
                "`edit_file` on 1 MB, beside the filesystem server's and the syncs",
                "1.0",
                *time_edits(stage, args.rounds),
            )
        row("`apply_patch` of 100 files, beside `git apply` and its syncs", "1.0", *time_patches(stage, args.rounds))
        size = args.megabytes << 20
        for name, pair in time_large_files(stage, max(3, args.rounds // 5), size).items():
            row(f"{name} {args.megabytes} MB, beside a bare copy, hash and sync", "1.5", *pair)
    finally:
        stage.app.close()
        shutil.rmtree(directory)


def row(measure, bar, ours, bare):
    ratio = statistics.median(a / b for a, b in zip(ours, bare, strict=True))
    ours_ms, bare_ms = statistics.median(ours) * 1e3, statistics.median(bare) * 1e3
    print(f"| {measure} | {ours_ms:.2f} ms | {bare_ms:.2f} ms | {ratio:.2f} | {bar} |", flush=True)


class Stage:
    """A workspace with an approved plan, and a directory for the bare counterpart."""

    def __init__(self, directory):
        self.root, self.bare = directory / "project", directory / "bare"
        for name in ("plans", "audit", "w"):
            (self.root / name).mkdir(parents=True)
        (self.root / "plans/PLAN-1.md").write_text(PLAN)
        self.bare.mkdir()
        self.app = App([os.path.realpath(self.root)])
        self.call("begin_session", role="WINDSURF")
        self.log = os.open(self.bare / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self.checkpoint = os.open(self.bare / "anchor", os.O_CREAT | os.O_RDWR)

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
        """With the log's lock, and the checkpoint, which is written after the sync."""
        fcntl.flock(self.log, fcntl.LOCK_EX)
        os.write(self.log, RECORD)
        fcntl.flock(self.log, fcntl.LOCK_UN)
        os.fdatasync(self.log)
        os.pwrite(self.checkpoint, RECORD[:76], 0)


def seconds_of(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def write_synced(path, content):
    """Write a file and fsync it."""
    fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.write(fd, content)
    os.fsync(fd)
    os.close(fd)


def sync_directory(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def time_writes(stage, rounds):
    """Each round writes new text, as an agent does; both sides create new files for it."""
    ours, same, syncs_only = [], [], []
    old = random_code()
    stage.call("write_file", path="w/f", content=old)
    write_synced(stage.bare / "f", old.encode())
    for name in ("objects", "journals", "done"):
        (stage.bare / name).mkdir()
    for number in range(rounds):
        new, old_hash = random_code(), hashlib.sha256(old.encode()).hexdigest()
        ours.append(seconds_of(lambda: stage.call("write_file", path="w/f", content=new, expected_hash=old_hash)))  # noqa: B023
        same.append(seconds_of(lambda: make_same_calls(stage, new.encode(), f"{number}")))  # noqa: B023
        syncs_only.append(seconds_of(lambda: make_six_syncs(stage, new.encode(), f"{number}-")))  # noqa: B023
        old = new
    return ours, same, syncs_only


def random_code():
    """8 KB of random lines that look like code."""
    lines = []
    while sum(map(len, lines)) < 8192:
        number = random.randrange(10**6)
        lines.append(
            f"    {random.choice(WORDS)}_{number} = {random.choice(WORDS)}({number}, {random.choice(WORDS)})\n"
        )
    return "".join(lines)


def make_same_calls(stage, content, name):
    """What a change writes, locks, renames and syncs, in its order, without its reads and rules."""
    bare = stage.bare
    stage.locked_record()
    journal = create_file(bare / "journals" / name, RECORD[:400])
    fcntl.flock(journal, fcntl.LOCK_EX)
    preimage = create_file(bare / "objects" / f".{name}", (bare / "f").read_bytes()[:3000])
    (bare / "objects" / f".{name}").rename(bare / "objects" / name)
    new = create_file(bare / "new", content)
    os.fchmod(new, 0o644)
    os.write(journal, RECORD[:24])
    for fd in (preimage, new, journal):
        os.fsync(fd)
        os.close(fd)
    sync_directory(bare / "objects")
    sync_directory(bare / "journals")
    dir_fd = os.open(bare, os.O_RDONLY | os.O_DIRECTORY)
    atomic_rename.exchange(dir_fd, b"new", b"f")
    os.fsync(dir_fd)
    os.close(dir_fd)
    stage.locked_record()
    (bare / "new").unlink()
    (bare / "journals" / name).rename(bare / "done" / name)


def make_six_syncs(stage, content, name):
    """Two log syncs, pre-image, journal, new file and its directory; pre-image and journal may lose their names."""
    bare = stage.bare
    stage.record()
    write_synced(bare / "objects" / name, (bare / "f").read_bytes())
    write_synced(bare / "journals" / name, RECORD)
    write_synced(bare / "new", content)
    (bare / "new").rename(bare / "f")
    sync_directory(bare)
    stage.record()
    (bare / "journals" / name).unlink()


def create_file(path, content):
    """Create and write a file; its descriptor."""
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    os.write(fd, content)
    return fd


def time_edits(stage, rounds):
    """One line in the middle of 1 MB, both through a pipe; the other server's edit is followed by its missing syncs."""
    files = {stage.root / "w/big.py": None, stage.bare / "big.py": None}
    half = "".join(random_code() for _ in range(128))
    old, new = "    edited = 'old'\n", "    edited = 'new'\n"
    for path in files:
        path.write_text(half + old + half)
    node = install_other(Path(tempfile.gettempdir()) / "kaiza-bench-node")
    kaiza = Client([sys.executable, "-m", "kaiza", "serve", "--workspace", str(stage.root)], dict(os.environ))
    filesystem = Client([*node, str(stage.bare)], dict(os.environ))
    for client in (kaiza, filesystem):
        client.open()
    kaiza.call("begin_session", {"role": "WINDSURF"})
    ours, theirs = [], []
    for number in range(rounds):
        old_hash = hashlib.sha256((stage.root / "w/big.py").read_bytes()).hexdigest()
        our_arguments = {"path": "w/big.py", "expected_hash": old_hash, "plan_hash": PLAN_HASH}
        our_arguments["edits"] = [{"old_text": old, "new_text": new}]
        their_arguments = {"path": str(stage.bare / "big.py"), "edits": [{"oldText": old, "newText": new}]}
        ours.append(seconds_of(lambda: kaiza.call("edit_file", our_arguments)))  # noqa: B023
        theirs.append(seconds_of(lambda: edit_and_sync(stage, filesystem, their_arguments, number)))  # noqa: B023
        old, new = new, old
    kaiza.close()
    filesystem.close()
    return ours, theirs


def edit_and_sync(stage, server, arguments, number):
    """The filesystem server's edit, with both records, the pre-image and the result on disk."""
    stage.record()
    path = stage.bare / "big.py"
    write_synced(stage.bare / "objects" / f"edit{number}", path.read_bytes())
    write_synced(stage.bare / "journals" / f"edit{number}", RECORD)
    server.call("edit_file", arguments)
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    sync_directory(stage.bare)
    stage.record()


def time_patches(stage, rounds):
    ours, bare = [], []
    for directory in (stage.root, stage.bare):
        (directory / "w").mkdir(exist_ok=True)
        for number in range(FILES):
            (directory / "w" / f"p{number}").write_text("line\n" * 50 + "old\n" + "line\n" * 50)
    forward = "".join(file_patch(number, "old", "new") for number in range(FILES))
    backward = "".join(file_patch(number, "new", "old") for number in range(FILES))
    for number in range(rounds):
        patch = (forward, backward)[number % 2]
        ours.append(seconds_of(lambda: stage.call("apply_patch", patch=patch)))  # noqa: B023
        bare.append(seconds_of(lambda: git_apply(stage, patch)))  # noqa: B023
    return ours, bare


def file_patch(number, old, new):
    name = f"w/p{number}"
    context = " line\n" * 3
    return f"--- a/{name}\n+++ b/{name}\n@@ -48,7 +48,7 @@\n{context}-{old}\n+{new}\n{context}"


def git_apply(stage, patch):
    """`git apply`, and what it omits: both records, pre-images and results on disk."""
    stage.record()
    for number in range(FILES):
        write_synced(stage.bare / f"pre{number}", (stage.bare / "w" / f"p{number}").read_bytes())
    subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=stage.bare, check=True)
    for number in range(FILES):
        fd = os.open(stage.bare / "w" / f"p{number}", os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
    sync_directory(stage.bare / "w")
    stage.record()


def time_large_files(stage, rounds, size):
    times = {"move": ([], []), "delete": ([], []), "undo the delete of": ([], [])}
    content = os.urandom(1 << 20) * (size >> 20)
    digest = hashlib.sha256(content).hexdigest()
    for number in range(rounds):
        source, destination = f"w/big{number}", f"w/moved{number}"
        write_stream_synced(stage.root / source, content)
        write_stream_synced(stage.bare / "big", content)
        move = lambda: stage.call("move_file", source=source, destination=destination, expected_hash=digest)  # noqa: E731, B023
        deleted = {}
        delete = lambda: deleted.update(stage.call("delete_file", path=destination, expected_hash=digest))  # noqa: E731, B023
        undo = lambda: stage.call("undo_changes", request_ids=[deleted["request_id"]])  # noqa: E731, B023
        for name, work in (("move", move), ("delete", delete), ("undo the delete of", undo)):
            for side, act in enumerate((work, lambda: copy_hash_sync(stage))):
                free_pages(stage, content)
                times[name][side].append(seconds_of(act))
        (stage.root / destination).unlink()
    return times


def free_pages(stage, content):
    """Leave recently used pages free: a virtual machine takes ten times as long to get others."""
    scratch = stage.bare / "scratch"
    scratch.write_bytes(content)
    scratch.unlink()
    (stage.bare / "copy").unlink(missing_ok=True)


def write_stream_synced(path, content):
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def copy_hash_sync(stage):
    digest = hashlib.sha256()
    with (stage.bare / "big").open("rb") as source, (stage.bare / "copy").open("wb") as target:
        while block := source.read(1 << 20):
            digest.update(block)
            target.write(block)
        target.flush()
        os.fsync(target.fileno())
    sync_directory(stage.bare)


if __name__ == "__main__":
    main()
