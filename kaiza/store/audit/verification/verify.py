"""Verification of the whole log: the hash chain, then the comparison with the checkpoint outside the workspace.

Unlike following (`tail`), this also checks that each line is canonical JSON.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from kaiza.domain import errors
from kaiza.domain.audit.hash_chain import Chain
from kaiza.domain.audit.record import GENESIS, ChainFault, LogHead, Verdict
from kaiza.store.audit import log_file
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.damage_mark import DamageMark, is_damage
from kaiza.store.audit.reader import read_blocks, read_records
from kaiza.store.audit.tail import compare_with_head, diagnose_tail
from kaiza.store.audit.verification import segment
from kaiza.store.disk import lock_timeouts, state_dir
from kaiza.store.disk.file_lock import FileLock

Progress = Callable[[int, int], None]
NO_RECORDS = Verdict("intact", 0, None, None, anchored=False)
_MAX_ATTEMPTS = 3


def verify_log(
    root: str, *, head: tuple[int, str] | None = None, progress: Progress | None = None, marks: bool = True
) -> Verdict:
    """Verify the log, and set or clear the damage mark by the verdict unless `marks` is false.

    `head` (number, hash) is a checkpoint that a person saved elsewhere; it affects the verdict but not the mark, since
    it may be mistyped. `progress` is called with the bytes verified and the bytes in all. AUDIT_LOG_FAILED if the log
    cannot be read.
    """
    directory = state_dir.path_of(root)
    found = compute_verdict(root, directory, progress)
    if marks and found.verdict == "intact":
        DamageMark(directory).clear()
    elif marks and is_damage(found.verdict) and directory.is_dir():
        DamageMark(directory).save(found)
    return found if head is None or is_damage(found.verdict) else _compare_with_saved_head(root, found, *head)


def compute_verdict(root: str, directory: Path, progress: Progress | None = None, *, alone: bool = False) -> Verdict:
    """Verify the log without touching the damage mark.

    `alone` verifies in this process only, with `progress` from the beginning to the end.
    """
    # A person may accept the damage meanwhile. The verdict is then about the old log, so the new one is verified.
    for _ in range(_MAX_ATTEMPTS):
        found, is_current = _verify_once(root, Checkpoint(directory), progress, alone=alone)
        if is_current:
            break
    return found


def _verify_once(root: str, checkpoint: Checkpoint, progress: Progress | None, *, alone: bool) -> tuple[Verdict, bool]:
    """The verdict, and whether the verified file is still the log."""
    try:
        descriptor = log_file.open_for_reading(root)
        if descriptor is None:
            found = Verdict("missing" if checkpoint.read() else "intact", 0, None, None, anchored=False)
            return found, log_file.is_absent(root)
        lock = FileLock(descriptor)
        try:
            found = _verify_descriptor(descriptor, lock, checkpoint, progress, alone=alone)
            return found, log_file.is_current(root, descriptor)
        finally:
            lock.close()
    except OSError as refused:
        raise log_file.log_error(
            refused, "The audit log could not be read. Check the disk that holds audit/."
        ) from refused


def _verify_descriptor(
    descriptor: int, lock: FileLock, checkpoint: Checkpoint, progress: Progress | None, *, alone: bool
) -> Verdict:
    chain = Chain()
    # Together under the lock: a checkpoint read later could name a record beyond `size`.
    with _lock_if_possible(lock):
        size = os.fstat(descriptor).st_size
        value = checkpoint.read()
    known = value.head if value else None
    if not alone:
        _verify_in_parallel(chain, descriptor, size)
    # Without the lock, so that writers need not wait for seconds. What looks invalid may be an append that was undone,
    # or a torn tail that was set aside, so it is read again under the lock.
    if not _verify_blocks(chain, descriptor, size, progress):
        with _lock_if_possible(lock):
            size = os.fstat(descriptor).st_size
            if not _verify_blocks(chain, descriptor, size, progress):
                found = diagnose_tail(chain, descriptor, size, known)
                if isinstance(found, Verdict):
                    return found
                fault = ChainFault(chain.seq + 1, "torn", found.offset)
                torn = Verdict("torn_tail", chain.seq, chain.head, fault, known is not None)
                return compare_with_head(chain, descriptor, known) or torn
    return compare_with_head(chain, descriptor, known) or Verdict(
        "intact", chain.seq, chain.head, None, known is not None
    )


def _verify_in_parallel(chain: Chain, descriptor: int, size: int) -> None:
    """Verify segments in one process each, and advance the chain as far as they are valid and connected."""
    offsets = segment.split_offsets(descriptor, size)
    if len(offsets) <= 2:  # noqa: PLR2004  one segment is not worth a process
        return
    (start, end), *others = pairwise(offsets)
    processes = [segment.start_process(descriptor, *other) for other in others]
    results = [segment.verify(descriptor, start, end), *map(segment.read_result, processes)]
    # A segment trusts the link of its first line; here each is compared with the end of the one before. What does not
    # fit is left to `_verify_blocks`, which finds the faulty line.
    for result in results:
        if result is None or not chain.is_at(result.before):
            return
        chain.resume_at(result.after)


def _verify_blocks(chain: Chain, descriptor: int, size: int, progress: Progress | None) -> bool:
    """Advance the chain to `size`; False, with the chain before it, at the first invalid line."""
    for block in read_blocks(descriptor, chain.size, size):
        if not chain.extend(block, strictly=True):
            return False
        if progress:
            progress(chain.size, size)
    return chain.size >= size


def _compare_with_saved_head(root: str, found: Verdict, seq: int, entry_hash: str) -> Verdict:
    """The verdict, made `cut_off` or `replaced` if the log does not contain this record."""
    if seq > found.records:
        fault = ChainFault(found.records + 1, "dropped", found.head.size if found.head else 0)
        return replace(found, verdict="cut_off", first_fault=fault, anchored=False)
    record = next(read_records(root, since_seq=seq), None)
    if record is None or record.seq != seq or record.entry_hash != entry_hash:
        return replace(found, verdict="replaced", first_fault=ChainFault(seq, "edited", 0), anchored=False)
    return replace(found, anchored=True)


@contextmanager
def _lock_if_possible(lock: FileLock) -> Iterator[None]:
    """Hold the lock; without it after a timeout, because a writer may be stopped while it holds the lock."""
    try:
        lock.acquire(lock_timeouts.LOG)
    except errors.SystemError:
        yield
        return
    try:
        yield
    finally:
        lock.release()


def verdict_output(verdict: Verdict) -> dict[str, Any]:
    """A verdict as output of `verify_audit_log`."""
    head = verdict.head or LogHead(0, GENESIS, 0)
    output: dict[str, Any] = {
        "verdict": verdict.verdict,
        "records": verdict.records,
        "head": {"seq": head.seq, "entry_hash": head.entry_hash},
    }
    if verdict.first_fault is not None:
        output["first_fault"] = {"seq": verdict.first_fault.seq, "why": verdict.first_fault.why}
    return output
