"""The head of the log, kept outside the workspace: only ever forward, and never a record that is not durable.

Two slots take turns, each with its own checksum, so that a torn write leaves the other one. The anchor itself is not
synced: after a power cut it may be older than the log, which makes it a lower bound and never a false alarm.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from kaiza.domain.record import Head
from kaiza.store.lock import FileLock

_SLOT = 256
_NAME = "anchor"


@dataclass(frozen=True, slots=True)
class Anchored:
    """What the anchor holds. `era` counts how often a person has accepted a damaged log and begun a new one."""

    head: Head
    era: int
    turn: int


class Anchor:
    """One process's hand on the anchor of a workspace."""

    def __init__(self, state: Path, *, lock_seconds: float = 5.0) -> None:
        self._path = state / _NAME
        self._lock_seconds = lock_seconds
        self._threads = threading.Lock()
        self._descriptor: int | None = None
        self._lock: FileLock | None = None

    def read(self) -> Anchored | None:
        """The newest sound slot, or None where there is no anchor."""
        try:
            told = self._path.read_bytes()
        except FileNotFoundError:
            return None
        return _newest(told)

    def advance(self, head: Head, era: int) -> None:
        """The anchor names this head or a later one when this returns; an older era has no say."""
        with self._held() as descriptor:
            known = _newest(os.pread(descriptor, 2 * _SLOT, 0))
            if known is None:
                _write(descriptor, Anchored(head, era, 0))
            elif known.era == era and known.head.seq < head.seq:
                _write(descriptor, Anchored(head, era, known.turn + 1))

    def begin_anew(self, head: Head) -> None:
        """A person accepted a new log: the anchor names its head, in a new era."""
        with self._held() as descriptor:
            known = _newest(os.pread(descriptor, 2 * _SLOT, 0))
            _write(descriptor, Anchored(head, known.era + 1 if known else 1, known.turn + 1 if known else 0))
            os.fsync(descriptor)

    def close(self) -> None:
        """Let go of the file."""
        with self._threads:
            self._forget()

    @contextmanager
    def _held(self) -> Iterator[int]:
        with self._threads:
            descriptor, lock = self._opened()
            lock.acquire(self._lock_seconds)
            try:
                yield descriptor
            finally:
                lock.release()

    def _opened(self) -> tuple[int, FileLock]:
        if self._descriptor is not None and self._lock is not None and _names(self._path, self._descriptor):
            return self._descriptor, self._lock
        self._forget()
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._lock = FileLock(self._descriptor)
        return self._descriptor, self._lock

    def _forget(self) -> None:
        if self._lock is not None:
            self._lock.abandon()
        self._descriptor = self._lock = None


def _names(path: Path, descriptor: int) -> bool:
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))


def _newest(told: bytes) -> Anchored | None:
    slots = [_parsed(told[:_SLOT]), _parsed(told[_SLOT : 2 * _SLOT])]
    return max((slot for slot in slots if slot), key=lambda slot: slot.turn, default=None)


def _write(descriptor: int, anchored: Anchored) -> None:
    os.pwrite(descriptor, _slot(anchored), _SLOT * (anchored.turn % 2))


def _slot(anchored: Anchored) -> bytes:
    head = anchored.head
    told = b"%d %d %d %s %d" % (anchored.turn, anchored.era, head.seq, head.entry_hash.encode(), head.size)
    return (told + b" " + sha256(told).hexdigest().encode()).ljust(_SLOT - 1) + b"\n"


def _parsed(slot: bytes) -> Anchored | None:
    told, _, check = slot.rstrip().rpartition(b" ")
    if sha256(told).hexdigest().encode() != check:
        return None
    turn, era, seq, entry_hash, size = told.split(b" ")
    return Anchored(Head(int(seq), entry_hash.decode(), int(size)), int(era), int(turn))
