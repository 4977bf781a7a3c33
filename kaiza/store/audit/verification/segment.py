"""Segment of a long log, verified in a process of its own, so that all processors share the work.

A segment's first line is trusted to name the right predecessor; the caller compares it with the segment before.
"""

import os
import subprocess
import sys
from dataclasses import dataclass

import orjson

from kaiza.domain.audit.hash_chain import Chain, InvalidLineError, parse_and_verify
from kaiza.domain.audit.record import LogHead
from kaiza.store.audit.reader import BLOCK_BYTES, read_lines

# Below this a second process takes longer to start than it saves.
_MIN_PARALLEL_BYTES = 32 << 20
# Bounds the memory: about 28 MB a process.
_MAX_SEGMENTS = 4


@dataclass(frozen=True, slots=True)
class Segment:
    """Valid lines: the head that the first of them continues, and the head at the last of them."""

    before: LogHead
    after: LogHead


def verify(descriptor: int, start: int, end: int) -> Segment | None:
    """Verify the lines between two offsets; None if one is invalid."""
    try:
        first = parse_and_verify(next(read_lines(descriptor, start, end), b""))
        before = LogHead(first.seq - 1, first.members["prev_hash"], start)
    except (InvalidLineError, KeyError, TypeError):
        return None
    chain = Chain(before)
    chain.extend(read_lines(descriptor, start, end), strictly=True)
    return Segment(before, LogHead(chain.seq, chain.entry_hash, chain.size)) if chain.size >= end else None


def split_offsets(descriptor: int, size: int) -> list[int]:
    """Offsets of lines that cut the log into one segment a processor; only both ends if it is short."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    segments = 1 if size < _MIN_PARALLEL_BYTES else min(_MAX_SEGMENTS, processors)
    offsets = {0, size}
    for number in range(1, segments):
        middle = size * number // segments
        rest_of_line = next(read_lines(descriptor, middle, min(size, middle + BLOCK_BYTES)), b"")
        offsets.add(middle + len(rest_of_line))
    return sorted(offsets)


def start_process(descriptor: int, start: int, end: int) -> "subprocess.Popen[bytes] | None":
    """Start `verify` in another process; None if it cannot be started."""
    try:
        return subprocess.Popen(  # noqa: S603  this module, in the interpreter that runs it
            [
                sys.executable,
                "-P",  # the working directory is the workspace: a module in there must not be imported
                "-m",
                "kaiza.store.audit.verification.segment",
                str(descriptor),
                str(start),
                str(end),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # The open file and not its path, which may name another file by now.
            pass_fds=(descriptor,),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    except OSError:
        return None


def read_result(process: "subprocess.Popen[bytes] | None") -> Segment | None:
    """Wait for the result of another process; None if its segment is invalid or it failed."""
    if process is None:
        return None
    output, _ = process.communicate()
    try:
        before, after = orjson.loads(output)
        return Segment(LogHead(**before), LogHead(**after))
    except (ValueError, TypeError):
        return None


if __name__ == "__main__":
    if (found := verify(*map(int, sys.argv[1:]))) is not None:
        sys.stdout.buffer.write(orjson.dumps([found.before, found.after]))
