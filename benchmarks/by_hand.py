"""What Kaiza's layers cost an append: the same calls, with its own sealing and `statx`, in one function.

    uv run python benchmarks/by_hand.py [--rounds 3]

What Kaiza's layers add is the distance to these rows. `following` reads what others wrote, hash by hash, as Kaiza does;
without it only the last line is read. Prints a Markdown table.
"""

import argparse
import ctypes
import fcntl
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import orjson
from audit_log import SECONDS, bare, body, counted, timed

from kaiza.domain import record
from kaiza.store.statx import Statx

SLOT = struct.Struct(">8sQQQQ32s")
SEAL = 82
BEGIN = ctypes.CDLL(None).sync_file_range
BEGIN.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)


class ByHand:
    def __init__(self, place, *, following=True):
        how = os.O_RDWR | os.O_CREAT
        self.path, self.damage, self.following = f"{place}/log".encode(), f"{place}/damage", following
        self.statx = Statx()
        self.log = os.open(self.path, how | os.O_APPEND, 0o600)
        self.anchor = os.open(f"{place}/anchor-{os.getpid()}", how, 0o600)
        self.inode, self.body = os.fstat(self.log).st_ino, body()
        self.seq, self.prev, self.size, self.last = 0, "0" * 64, 0, b""

    def append(self):
        fcntl.flock(self.log, fcntl.LOCK_EX)
        _, inode, size, *_ = self.statx.at(self.path)
        assert inode == self.inode
        os.access(self.damage, os.F_OK)
        if size > self.size:
            self.catch_up(size)
        elif self.last:
            assert os.pread(self.log, len(self.last), self.size - len(self.last)) == self.last
        line, whole = record.seal(self.body, self.seq + 1, self.prev)
        digest = whole["entry_hash"]
        os.write(self.log, line)
        fcntl.flock(self.log, fcntl.LOCK_UN)
        BEGIN(self.log, 0, 0, 2)
        self.seq, self.prev, self.size, self.last = self.seq + 1, digest, self.size + len(line), line
        slot = SLOT.pack(b"by hand\n", self.seq, 0, self.seq, self.size, bytes.fromhex(digest))
        os.fdatasync(self.log)
        os.pwrite(self.anchor, slot + struct.pack(">L", crc32(slot)), 512 * (self.seq & 1))

    def catch_up(self, size):
        start = self.size if self.following else max(0, size - 4096)
        lines = os.pread(self.log, size - start, start).splitlines(keepends=True)
        for line in lines if self.following else lines[-1:]:
            self.prev = sha256(line[:-SEAL] + b"}").hexdigest()
            assert line[-67:-3] == self.prev.encode()
            self.seq, self.last = orjson.loads(line)["seq"], line
        self.size = size


def work_of(kind, place):
    if kind == "bare":
        return bare(f"{place}/{os.getpid()}")
    return ByHand(place, following=kind == "following").append


def eight(kind, place):
    place.mkdir()
    command = [sys.executable, __file__, "--child", kind, str(place), str(time.time() + 1.5)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    return sum(int(process.communicate()[0]) for process in running) / SECONDS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=3)
    args = parser.parse_args()
    if args.child:
        kind, place, begin = args.child
        print(counted(work_of(kind, place), float(begin)))
        return
    with tempfile.TemporaryDirectory() as parent:
        print("| measure | by hand | bare | ratio |\n|---|---|---|---|")
        ours, floor = ByHand(parent).append, bare(f"{parent}/bare")
        turns = [(timed(ours, 1), timed(floor, 1)) for _ in range(500 * args.rounds)]
        hand, least = (statistics.median(column) for column in zip(*turns, strict=True))
        print(f"| durable append p50 | {hand:.0f} us | {least:.0f} us | {hand / least:.2f} |", flush=True)
        for kind in ("following", "last line only"):
            turns = [
                [eight(one, Path(parent) / f"{one} {kind} {turn}") for one in (kind, "bare")]
                for turn in range(args.rounds)
            ]
            hand, least = (statistics.median(column) for column in zip(*turns, strict=True))
            ratio = statistics.median(one / other for one, other in turns)
            print(f"| eight processes, {kind} | {hand:.0f} a second | {least:.0f} a second | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
