"""The whole log judged from its bytes: the chain first, then what is known of it from elsewhere."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from kaiza.domain import errors
from kaiza.domain.chain import Chain
from kaiza.domain.record import Fault, Head, Verdict
from kaiza.store import log_file, state, stretch
from kaiza.store.anchor import Anchor
from kaiza.store.damage import Damage, is_damage
from kaiza.store.follower import Torn, against, judge_rest
from kaiza.store.lock import FileLock
from kaiza.store.log_lines import blocks
from kaiza.store.records import records

Progress = Callable[[int, int], None]
_PATIENCE = 5.0
_MOST_LOGS = 3


def verify(root: str, *, head: tuple[int, str] | None = None, progress: Progress | None = None) -> Verdict:
    """The verdict, which stops changes or lets them go on again; then `head` (SEQ, HASH) is held against the log too.

    `progress` is told bytes judged and bytes in all. AUDIT_LOG_FAILED where there is something that cannot be read.
    """
    place = state.directory(root)
    found = judge(root, place, progress)
    if found.verdict == "intact":
        Damage(place).clear()
    elif is_damage(found.verdict) and place.is_dir():
        Damage(place).note(found)
    return found if head is None or is_damage(found.verdict) else _held_against(root, found, *head)


def judge(root: str, place: Path, progress: Progress | None = None, *, alone: bool = False) -> Verdict:
    """The verdict alone; nothing is remembered. Where a person accepts the log meanwhile, it is the new one's.

    `alone`: on one processor, and with `progress` from the beginning to the end.
    """
    for _ in range(_MOST_LOGS):
        found, stands = _judged_once(root, Anchor(place), progress, alone=alone)
        if stands:
            break
    return found


def _judged_once(root: str, anchor: Anchor, progress: Progress | None, *, alone: bool) -> tuple[Verdict, bool]:
    """The verdict, and whether it is about the log that stands there now."""
    try:
        descriptor = None if log_file.is_absent(root) else log_file.open_to_read(root)
        if descriptor is None:
            found = Verdict("missing" if anchor.read() else "intact", 0, None, None, anchored=False)
            return found, log_file.is_absent(root)
        lock = FileLock(descriptor)
        try:
            found = _judged(descriptor, lock, anchor, progress, alone=alone)
            return found, log_file.is_there(root, descriptor)
        finally:
            lock.abandon()
    except OSError as refused:
        raise log_file.failure(refused, "The record could not be read. Check the disk that holds audit/.") from refused


def _judged(descriptor: int, lock: FileLock, anchor: Anchor, progress: Progress | None, *, alone: bool) -> Verdict:
    chain = Chain()
    with _quiet(lock):
        size = os.fstat(descriptor).st_size
        anchored = anchor.read()
    known = anchored.head if anchored else None
    if not alone:
        _share(chain, descriptor, size)
    if not _walk(chain, descriptor, size, progress):
        with _quiet(lock):
            size = os.fstat(descriptor).st_size
            if not _walk(chain, descriptor, size, progress):
                found = judge_rest(chain, descriptor, size, known)
                if isinstance(found, Verdict):
                    return found
                return against(chain, descriptor, known) or _torn(chain, known, found)
    return against(chain, descriptor, known) or Verdict("intact", chain.seq, chain.head, None, known is not None)


def _share(chain: Chain, descriptor: int, size: int) -> None:
    """Let every processor judge a stretch; the chain goes on as far as they are sound and meet."""
    places = stretch.cuts(descriptor, size)
    if len(places) <= 2:  # noqa: PLR2004  one stretch is not worth a process
        return
    (start, end), *others = pairwise(places)
    elsewhere = [stretch.elsewhere(descriptor, *other) for other in others]
    found = [stretch.judge(descriptor, start, end), *map(stretch.outcome, elsewhere)]
    for one in found:
        if one is None or not chain.meets(one.before):
            return
        chain.go_on_from(one.after)


def _walk(chain: Chain, descriptor: int, size: int, progress: Progress | None) -> bool:
    """Whether every line up to `size` is sound; the chain stands where the first one is not."""
    for block in blocks(descriptor, chain.size, size):
        if not chain.follow(block, strictly=True):
            return False
        if progress:
            progress(chain.size, size)
    return chain.size >= size


def _torn(chain: Chain, known: Head | None, torn: Torn) -> Verdict:
    return Verdict("torn_tail", chain.seq, chain.head, Fault(chain.seq + 1, "torn", torn.offset), known is not None)


def _held_against(root: str, found: Verdict, seq: int, entry_hash: str) -> Verdict:
    """The verdict, unless the log lacks the record that somebody kept the hash of, or has another in its place."""
    if seq > found.records:
        fault = Fault(found.records + 1, "dropped", found.head.size if found.head else 0)
        return replace(found, verdict="cut_off", first_fault=fault, anchored=False)
    there = next(records(root, since_seq=seq), None)
    if there is None or there["seq"] != seq or there.get("entry_hash") != entry_hash:
        return replace(found, verdict="replaced", first_fault=Fault(seq, "edited", 0), anchored=False)
    return replace(found, anchored=True)


@contextmanager
def _quiet(lock: FileLock) -> Iterator[None]:
    """While nobody writes; where the lock cannot be had, as things are."""
    try:
        lock.acquire(_PATIENCE)
    except errors.SystemError:
        yield
        return
    try:
        yield
    finally:
        lock.release()
