"""The whole log judged from its bytes: the chain first, then what is known of it from elsewhere."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from kaiza.domain import errors
from kaiza.domain.audit.hash_chain import Chain
from kaiza.domain.audit.record import ChainFault, LogHead, Verdict
from kaiza.store.audit import log_file
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.damage_mark import DamageMark, is_damage
from kaiza.store.audit.line_reader import read_blocks
from kaiza.store.audit.reader import read_records
from kaiza.store.audit.tail import TornTail, compare_with_head, diagnose_tail
from kaiza.store.audit.verification import segment
from kaiza.store.disk import state_dir
from kaiza.store.disk.file_lock import FileLock

Progress = Callable[[int, int], None]
_LOCK_SECONDS = 5.0
_MAX_ATTEMPTS = 3


def verify_log(root: str, *, head: tuple[int, str] | None = None, progress: Progress | None = None) -> Verdict:
    """The verdict, which stops changes or lets them go on again; then `head` (SEQ, HASH) is held against the log too.

    `progress` is told bytes judged and bytes in all. AUDIT_LOG_FAILED where there is something that cannot be read.
    """
    place = state_dir.path_of(root)
    found = compute_verdict(root, place, progress)
    if found.verdict == "intact":
        DamageMark(place).clear()
    elif is_damage(found.verdict) and place.is_dir():
        DamageMark(place).save(found)
    return found if head is None or is_damage(found.verdict) else _require_kept_head(root, found, *head)


def compute_verdict(root: str, place: Path, progress: Progress | None = None, *, alone: bool = False) -> Verdict:
    """The verdict alone; nothing is remembered. Where a person accepts the log meanwhile, it is the new one's.

    `alone`: on one processor, and with `progress` from the beginning to the end.
    """
    for _ in range(_MAX_ATTEMPTS):
        found, stands = _verify_once(root, Checkpoint(place), progress, alone=alone)
        if stands:
            break
    return found


def _verify_once(root: str, anchor: Checkpoint, progress: Progress | None, *, alone: bool) -> tuple[Verdict, bool]:
    """The verdict, and whether it is about the log that stands there now."""
    try:
        descriptor = None if log_file.is_absent(root) else log_file.open_for_reading(root)
        if descriptor is None:
            found = Verdict("missing" if anchor.read() else "intact", 0, None, None, anchored=False)
            return found, log_file.is_absent(root)
        lock = FileLock(descriptor)
        try:
            found = _verify_descriptor(descriptor, lock, anchor, progress, alone=alone)
            return found, log_file.is_current(root, descriptor)
        finally:
            lock.close()
    except OSError as refused:
        raise log_file.log_error(
            refused, "The record could not be read. Check the disk that holds audit/."
        ) from refused


def _verify_descriptor(
    descriptor: int, lock: FileLock, anchor: Checkpoint, progress: Progress | None, *, alone: bool
) -> Verdict:
    chain = Chain()
    with _lock_if_possible(lock):
        size = os.fstat(descriptor).st_size
        anchored = anchor.read()
    known = anchored.head if anchored else None
    if not alone:
        _verify_in_parallel(chain, descriptor, size)
    if not _verify_blocks(chain, descriptor, size, progress):
        with _lock_if_possible(lock):
            size = os.fstat(descriptor).st_size
            if not _verify_blocks(chain, descriptor, size, progress):
                found = diagnose_tail(chain, descriptor, size, known)
                if isinstance(found, Verdict):
                    return found
                return compare_with_head(chain, descriptor, known) or _torn_tail_verdict(chain, known, found)
    return compare_with_head(chain, descriptor, known) or Verdict(
        "intact", chain.seq, chain.head, None, known is not None
    )


def _verify_in_parallel(chain: Chain, descriptor: int, size: int) -> None:
    """Let every processor judge a stretch; the chain goes on as far as they are sound and meet."""
    places = segment.split_offsets(descriptor, size)
    if len(places) <= 2:  # noqa: PLR2004  one stretch is not worth a process
        return
    (start, end), *others = pairwise(places)
    elsewhere = [segment.start_process(descriptor, *other) for other in others]
    found = [segment.verify(descriptor, start, end), *map(segment.read_result, elsewhere)]
    for one in found:
        if one is None or not chain.is_at(one.before):
            return
        chain.resume_at(one.after)


def _verify_blocks(chain: Chain, descriptor: int, size: int, progress: Progress | None) -> bool:
    """Whether every line up to `size` is sound; the chain stands where the first one is not."""
    for block in read_blocks(descriptor, chain.size, size):
        if not chain.extend(block, strictly=True):
            return False
        if progress:
            progress(chain.size, size)
    return chain.size >= size


def _torn_tail_verdict(chain: Chain, known: LogHead | None, torn: TornTail) -> Verdict:
    return Verdict(
        "torn_tail", chain.seq, chain.head, ChainFault(chain.seq + 1, "torn", torn.offset), known is not None
    )


def _require_kept_head(root: str, found: Verdict, seq: int, entry_hash: str) -> Verdict:
    """The verdict, unless the log lacks the record that somebody kept the hash of, or has another in its place."""
    if seq > found.records:
        fault = ChainFault(found.records + 1, "dropped", found.head.size if found.head else 0)
        return replace(found, verdict="cut_off", first_fault=fault, anchored=False)
    there = next(read_records(root, since_seq=seq), None)
    if there is None or there["seq"] != seq or there.get("entry_hash") != entry_hash:
        return replace(found, verdict="replaced", first_fault=ChainFault(seq, "edited", 0), anchored=False)
    return replace(found, anchored=True)


@contextmanager
def _lock_if_possible(lock: FileLock) -> Iterator[None]:
    """While nobody writes; where the lock cannot be had, as things are."""
    try:
        lock.acquire(_LOCK_SECONDS)
    except errors.SystemError:
        yield
        return
    try:
        yield
    finally:
        lock.release()
