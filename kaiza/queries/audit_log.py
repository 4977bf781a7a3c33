"""The audit log as people read it: lazily, in either direction, while servers may be writing; and its verification."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from kaiza.domain.audit.record import Record
from kaiza.store.audit import log_file, reader
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.damage_mark import is_damage
from kaiza.store.audit.reader import read_records
from kaiza.store.audit.verification.verify import verdict_output, verify_log
from kaiza.store.disk import state_dir
from kaiza.store.open_changes import find_abandoned
from kaiza.store.trust.binding import read_binding

__all__ = ["find_abandoned", "is_damage"]

Progress = Callable[[int, int], None]


def read_forward(root: str, since_seq: int = 1) -> Iterator[Record]:
    """Records from a sequence number on, oldest first."""
    return read_records(root, since_seq=since_seq)


def read_backward(root: str) -> Iterator[Record]:
    """All records, newest first."""
    return read_records(root, reverse=True)


def last_record(root: str) -> Record | None:
    """The newest record."""
    return next(read_backward(root), None)


def raw_lines(root: str) -> Iterator[tuple[bytes, Record | None]]:
    """Every line byte for byte, with the record it holds; None for a line that is not a record."""
    descriptor = None if log_file.is_absent(root) else log_file.open_for_reading(root)
    if descriptor is None:
        return
    try:
        for line in reader.read_lines(descriptor, 0, os.fstat(descriptor).st_size):
            try:
                members = orjson.loads(line)
            except orjson.JSONDecodeError:
                members = None
            yield line, Record(members) if isinstance(members, dict) else None
    finally:
        os.close(descriptor)


def file_extent(root: str) -> tuple[int, int]:
    """Inode and size of the log: they change with every append, and when a new log is begun."""
    try:
        status = Path(log_file.path_of(root)).stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_ino, status.st_size


def verify(root: str, progress: Progress | None = None, checkpoint: tuple[int, str] | None = None) -> dict[str, Any]:
    """Verify the whole log; what `audit verify --json` prints: the output of `verify_audit_log`, whether anchored."""
    # In a new workspace what the state directory knows is about an earlier one at this path: its log is missing, which
    # a person should hear, but nothing here is damaged.
    marks = not read_binding(root, state_dir.path_of(root)).is_new
    verdict = verify_log(root, head=checkpoint, progress=progress, marks=marks)
    summary = f"The log is {verdict.verdict}: {verdict.records} records."
    return {**verdict_output(verdict), "anchored": verdict.anchored, "summary": summary}


def describe_standing(root: str) -> str | None:
    """What a verdict is about, where that is not the workspace as it is now."""
    state_path = state_dir.path_of(root)
    binding = read_binding(root, state_path)
    if binding.is_foreign:
        return "this workspace came from elsewhere. The checkpoint covers only what came since."
    if binding.is_new and Checkpoint(state_path).read() is not None:
        return (
            "nothing is recorded here, so this workspace counts as a new one: if you made it anew at this path, there "
            "is nothing to do. The next call begins a log, and what the earlier one forbade holds."
        )
    return None
