"""One stretch of a long log, judged in a process of its own, so that every processor takes a share.

Its first line is believed to follow whatever it names; whether it does is seen where the stretches meet.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from kaiza.domain.audit.hash_chain import Chain, InvalidLineError, parse_and_verify
from kaiza.domain.audit.record import LogHead
from kaiza.store.audit.line_reader import BLOCK_BYTES, read_lines

_MIN_PARALLEL_BYTES = 32 << 20
_MAX_SEGMENTS = 4


@dataclass(frozen=True, slots=True)
class Segment:
    """Sound lines: the head that the first of them goes on from, and the head that the last of them is."""

    before: LogHead
    after: LogHead


def verify(descriptor: int, start: int, end: int) -> Segment | None:
    """The stretch from a line's beginning to a line's end, or None where a line in it is not sound."""
    try:
        first = parse_and_verify(next(read_lines(descriptor, start, end), b""))
        before = LogHead(first["seq"] - 1, first["prev_hash"], start)
    except (InvalidLineError, KeyError, TypeError):
        return None
    chain = Chain(before)
    chain.extend(read_lines(descriptor, start, end), strictly=True)
    return Segment(before, LogHead(chain.seq, chain.entry_hash, chain.size)) if chain.size >= end else None


def split_offsets(descriptor: int, size: int) -> list[int]:
    """Where to cut a log so that every processor gets a share; only its two ends where it is short."""
    shares = min(_MAX_SEGMENTS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
    if size < _MIN_PARALLEL_BYTES:
        shares = 1
    inner = {_next_line_start(descriptor, size * number // shares, size) for number in range(1, shares)}
    return sorted({0, size} | inner)


def start_process(descriptor: int, start: int, end: int) -> "subprocess.Popen[bytes] | None":
    """The same judgement under way in another process; None where there can be none."""
    try:
        return subprocess.Popen(  # noqa: S603  ourselves, by the interpreter that runs us
            [
                sys.executable,
                "-P",
                "-m",
                "kaiza.store.audit.verification.segment",
                str(descriptor),
                str(start),
                str(end),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(descriptor,),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    except OSError:
        return None


def read_result(process: "subprocess.Popen[bytes] | None") -> Segment | None:
    """What the other process found; None also where it did not come to an end."""
    if process is None:
        return None
    told, _ = process.communicate()
    try:
        before, after = orjson.loads(told)
        return Segment(LogHead(**before), LogHead(**after))
    except (ValueError, TypeError):
        return None


def _next_line_start(descriptor: int, place: int, size: int) -> int:
    for line in read_lines(descriptor, place, min(size, place + BLOCK_BYTES)):
        return place + len(line)
    return size


def _main(arguments: Sequence[str]) -> None:
    found = verify(*map(int, arguments))
    if found is not None:
        sys.stdout.buffer.write(orjson.dumps([found.before, found.after]))


if __name__ == "__main__":
    _main(sys.argv[1:])
