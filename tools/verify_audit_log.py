"""Verify a Kaiza audit log with nothing but Python's standard library. docs/audit-format.md describes the format."""

import argparse
import errno
import json
import os
import re
import struct
import zlib
from collections.abc import Iterator
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

GENESIS, SUFFIX = "0" * 64, ',"entry_hash":"%s"}\n'
MAX_LINE_BYTES, MAX_DEPTH, SECTOR_BYTES, MIN_ZERO_BYTES = 2 << 20, 254, 512, 8
SLOT = struct.Struct(">8sQQQQ32s")
Head = tuple[int, str, int]  # of the last valid record: its number, its hash, and the offset of its end


def in_profile(value: Any, depth: int = 1) -> bool:
    """Whether a value has only ASCII keys, no floats and no integer from 2**53, and is not nested too deep."""
    if not isinstance(value, dict | list):
        return type(value) is not float and (type(value) is not int or abs(value) < 2**53)
    items, keys = (value.values(), value) if isinstance(value, dict) else (value, ())
    return depth <= MAX_DEPTH and all(map(str.isascii, keys)) and all([in_profile(item, depth + 1) for item in items])


def parse(line: bytes) -> dict[str, Any] | None:
    """The record in a line; None unless its hash is right and its body is canonical JSON."""
    body = line[: -len(SUFFIX % GENESIS)] + b"}"
    digest = sha256(body).hexdigest()
    if not line.endswith((SUFFIX % digest).encode()):
        return None
    try:
        record = json.loads(body.decode())
        encoded = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return None
    if type(record) is not dict or encoded != body or not in_profile(record) or "entry_hash" in record:
        return None
    return {**record, "entry_hash": digest}


def follow(head: Head, line: bytes) -> Head | None:
    """The head after a line; None if it is not the next record of the chain."""
    record, (seq, entry_hash, size) = parse(line), head
    if record is None or record.get("prev_hash") != entry_hash or type(record.get("seq")) is not int:
        return None
    return (seq + 1, record["entry_hash"], size + len(line)) if record["seq"] == seq + 1 else None


def skip_hole(file: BinaryIO) -> None:
    """Go on to the next data of a sparse file: a hole has no line feed, and may be as large as one likes."""
    try:
        file.seek(os.lseek(file.fileno(), file.tell(), os.SEEK_DATA))
    except OSError as error:
        file.seek(0, os.SEEK_END if error.errno == errno.ENXIO else os.SEEK_CUR)


def read_lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines with their newlines. One that is longer than a line may be is cut, so that it is not valid."""
    while line := file.readline(MAX_LINE_BYTES + 1):
        end = line
        while len(line) > MAX_LINE_BYTES and end and not end.endswith(b"\n"):
            skip_hole(file)
            end = file.readline(MAX_LINE_BYTES)
        yield line[: MAX_LINE_BYTES - 1] + end[-1:] if len(line) > MAX_LINE_BYTES and end else line[:MAX_LINE_BYTES]


def is_torn(line: bytes, offset: int) -> bool:
    """Whether a crash can have left this last line: no newline, or a sector of the disk that reads as zeros."""
    if len(line) >= MAX_LINE_BYTES:
        return False
    cuts = [*range(SECTOR_BYTES - offset % SECTOR_BYTES, len(line), SECTOR_BYTES), len(line)]
    sectors = [line[start:end] for start, end in zip([0, *cuts], cuts, strict=False)]
    return not line.endswith(b"\n") or any(len(one) >= MIN_ZERO_BYTES and not any(one) for one in sectors)


def diagnose(head: Head, line: bytes, rest: Iterator[bytes]) -> tuple[int, str]:
    """The number of the faulty record, and the fault; `line` is the first that does not continue the chain."""
    seq, record, following = head[0] + 1, parse(line), next(rest, b"")
    if record is None or record.get("seq") == seq:
        if follow(head, following):
            return seq, "inserted"
        after = parse(following)
        # It links to another record than the one before it. If the log continues from here, that one was edited.
        is_linked = record is not None and (after is None or after.get("prev_hash") == record["entry_hash"])
        return (seq - 1 if head[0] and is_linked else seq), "edited"
    if type(record.get("seq")) is not int or record["seq"] < seq:
        return seq, "inserted"
    predecessor, has_next, has_predecessor = (SUFFIX % record.get("prev_hash")).encode(), False, False
    for other in chain([following], rest):
        if other == line:
            return seq, "inserted"
        has_next = has_next or follow(head, other) is not None
        has_predecessor = has_predecessor or other.endswith(predecessor)
    return seq, "dropped" if not has_next else "reordered" if has_predecessor else "inserted"


def read_anchor(state: str) -> Head | None:
    """The newest checkpoint in Kaiza's state directory."""
    slots = []
    for name in filter(re.compile("anchor(-[0-9]+)?").fullmatch, os.listdir(state)):
        content = Path(state, name).read_bytes()
        parts = [content[start : start + SLOT.size + 4] for start in (0, SECTOR_BYTES)]
        checked = [part[: SLOT.size] for part in parts if part[SLOT.size :] == zlib.crc32(part[:-4]).to_bytes(4, "big")]
        slots += sorted(slot for slot in map(SLOT.unpack, checked) if slot[0] == b"kaiza/1\n")[-1:]
    newest = max(slots, key=lambda slot: slot[2:4], default=None)
    return newest and (newest[3], newest[5].hex(), newest[4])


def verify(path: str, saved: tuple[int, str] | None = None, anchor: Head | None = None) -> dict[str, Any]:
    """The verdict on a log, compared with Kaiza's own checkpoint and with one that a person saved."""
    head, verdict, fault, seen = (0, GENESIS, 0), "intact", None, set[Any]()
    if not os.path.lexists(path) and os.path.isdir(os.path.dirname(path) or "."):
        path, verdict = os.devnull, "missing" if anchor else "intact"
    elif os.path.islink(path) or not os.path.isfile(path):
        raise OSError("not a regular file")
    with open(path, "rb") as file:
        rest, size = read_lines(file), os.fstat(file.fileno()).st_size
        for line in rest:
            if (after := follow(head, line)) is None:
                is_last = not line.endswith(b"\n") or head[2] + len(line) >= size
                is_durable = anchor is not None and anchor[2] > head[2] and line.endswith(b"\n")
                is_crash = is_last and is_torn(line, head[2]) and not is_durable
                verdict = "torn_tail" if is_crash else "broken"
                fault = (head[0] + 1, "torn") if is_crash else diagnose(head, line, rest)
                break
            head, seen = after, seen | ({after, after[:2]} & {anchor, saved})
    for known in (anchor, saved):
        if known and known not in seen and verdict in {"intact", "torn_tail"}:
            verdict = "cut_off" if known[0] > head[0] else "replaced"
            fault = (head[0] + 1, "dropped") if verdict == "cut_off" else (known[0], "edited")
    found = {"verdict": verdict, "records": head[0], "head": {"seq": head[0], "entry_hash": head[1]}}
    found |= {"first_fault": {"seq": fault[0], "why": fault[1]}} if fault else {}
    return {**found, "anchored": bool(seen) and verdict in {"intact", "torn_tail"}}


def main() -> int:
    """Print the verdict as JSON. Exit status: 0 intact, 1 any other verdict, 2 usage error, 3 could not determine."""
    parser = argparse.ArgumentParser(description=__doc__, epilog=main.__doc__)
    parser.add_argument("log", help="the log, for example audit/audit-log.jsonl")
    parser.add_argument("--head", metavar="SEQ:HASH", help="a checkpoint saved elsewhere")
    parser.add_argument("--state", metavar="DIR", help="Kaiza's state directory of the workspace, with its checkpoints")
    args = parser.parse_args()
    saved = re.fullmatch("([1-9][0-9]{0,15}):([0-9a-f]{64})", args.head or "")
    if args.head is not None and not saved:
        parser.error("--head is SEQ:HASH, as `kaiza audit head` prints it")
    try:
        anchor = read_anchor(args.state) if args.state else None
        verdict = verify(args.log, (int(saved[1]), saved[2]) if saved else None, anchor)
    except OSError as problem:
        parser.exit(3, f"{args.log}: {problem}\n")
    print(json.dumps(verdict))
    return 0 if verdict["verdict"] == "intact" else 1


if __name__ == "__main__":
    raise SystemExit(main())
