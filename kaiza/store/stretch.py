"""One stretch of a long log, judged in a process of its own, so that every processor takes a share.

Its first line is believed to follow whatever it names; whether it does is seen where the stretches meet.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from kaiza.domain.chain import Chain, FaultyLineError, unseal
from kaiza.domain.record import Head
from kaiza.store.log_lines import BLOCK, lines

_SHORTEST = 32 << 20
_MOST = 4


@dataclass(frozen=True, slots=True)
class Stretch:
    """Sound lines: the head that the first of them goes on from, and the head that the last of them is."""

    before: Head
    after: Head


def judge(descriptor: int, start: int, end: int) -> Stretch | None:
    """The stretch from a line's beginning to a line's end, or None where a line in it is not sound."""
    try:
        first = unseal(next(lines(descriptor, start, end), b""))
        before = Head(first["seq"] - 1, first["prev_hash"], start)
    except (FaultyLineError, KeyError, TypeError):
        return None
    chain = Chain(before)
    chain.follow(lines(descriptor, start, end), strictly=True)
    return Stretch(before, Head(chain.seq, chain.entry_hash, chain.size)) if chain.size >= end else None


def cuts(descriptor: int, size: int) -> list[int]:
    """Where to cut a log so that every processor gets a share; only its two ends where it is short."""
    shares = min(_MOST, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
    if size < _SHORTEST:
        shares = 1
    inner = {_line_begin(descriptor, size * number // shares, size) for number in range(1, shares)}
    return sorted({0, size} | inner)


def elsewhere(descriptor: int, start: int, end: int) -> "subprocess.Popen[bytes] | None":
    """The same judgement under way in another process; None where there can be none."""
    try:
        return subprocess.Popen(  # noqa: S603  ourselves, by the interpreter that runs us
            [sys.executable, "-P", "-m", "kaiza.store.stretch", str(descriptor), str(start), str(end)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(descriptor,),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    except OSError:
        return None


def outcome(process: "subprocess.Popen[bytes] | None") -> Stretch | None:
    """What the other process found; None also where it did not come to an end."""
    if process is None:
        return None
    told, _ = process.communicate()
    try:
        before, after = orjson.loads(told)
        return Stretch(Head(**before), Head(**after))
    except (ValueError, TypeError):
        return None


def _line_begin(descriptor: int, place: int, size: int) -> int:
    for line in lines(descriptor, place, min(size, place + BLOCK)):
        return place + len(line)
    return size


def _main(arguments: Sequence[str]) -> None:
    found = judge(*map(int, arguments))
    if found is not None:
        sys.stdout.buffer.write(orjson.dumps([found.before, found.after]))


if __name__ == "__main__":
    _main(sys.argv[1:])
