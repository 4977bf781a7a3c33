"""The head of the log, kept outside the workspace: only ever forward, and never a record that is not durable.

Two slots take turns, each in a sector and with a checksum of its own, so that a torn write leaves the other one. The
anchor itself is not synced: after a power cut it may be older than the log, a lower bound and never a false alarm.
"""

import errno
import os
import struct
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from kaiza.domain.record import Head
from kaiza.store.lock import FileLock

_NAME = "anchor"
_SECTOR = 512
_SLOT = struct.Struct(">8sQQQQ32s")
_CHECK = struct.Struct(">L")
_TURN = struct.Struct(">8xQ")
_NOW_AND_THEN = 16
_MARK = b"kaiza/1\n"
_LENGTH = _SECTOR + _SLOT.size + _CHECK.size


class Anchored(NamedTuple):
    """What the anchor holds. `era` counts how often a person has accepted a damaged log and begun a new one."""

    head: Head
    era: int
    turn: int


class Anchor:
    """One process's hand on the anchor of a workspace; one thread at a time, but for `read`."""

    def __init__(self, state: Path) -> None:
        self._path = state / _NAME
        self._descriptor = -1
        self._lock: FileLock | None = None
        self._uses = 0
        self._told = b""
        self.known: Anchored | None = None
        """What the file says, by the bytes it was last seen with."""

    def read(self) -> Anchored | None:
        """The newest sound slot, or None where there is no anchor."""
        try:
            return _newest(self._path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None

    def lock(self) -> FileLock:
        """What to hold while a head is made durable and then named here."""
        self._uses += 1
        if self._lock is None or (self._uses % _NOW_AND_THEN == 0 and os.fstat(self._descriptor).st_nlink == 0):
            self.close()
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            self._lock = FileLock(self._descriptor)
        return self._lock

    def look(self) -> bool:
        """Read it again; whether anybody else wrote meanwhile. Called between `lock` and `close`."""
        told = os.pread(self._descriptor, _LENGTH, 0)
        if told == self._told:
            return False
        self._told, self.known = told, _newest(told)
        return True

    def covers(self, seq: int, era: int) -> bool:
        """Whether some process had made that record durable when we last looked."""
        return self.known is not None and self.known.head.seq >= seq and self.known.era == era

    def has_reached(self, seq: int, era: int) -> bool:
        """Whether it covers that record by now; cheap, for those who wait. Called between `lock` and `close`."""
        told = os.pread(self._descriptor, _LENGTH, 0)
        for place in (0, _SECTOR):
            if len(told) >= place + _SLOT.size:
                _, _, then, reached, _, _ = _SLOT.unpack_from(told, place)
                if reached >= seq and then == era and _parsed(told, place):
                    return True
        return False

    def advance(self, head: Head, era: int) -> None:
        """The anchor names this durable head or a later one when this returns. Locked, and just looked at.

        An older era than the anchor's own has no say.
        """
        known = self.known
        if known is None:
            self._write(Anchored(head, era, 0))
        elif known.era == era and known.head.seq < head.seq:
            self._write(Anchored(head, era, known.turn + 1))

    def begin_anew(self, head: Head) -> None:
        """A person accepted a new log: the anchor names its head, durably, in a new era. Locked."""
        self.look()
        known = self.known
        self._write(Anchored(head, known.era + 1 if known else 1, known.turn + 1 if known else 0))
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Let go of the file."""
        if self._lock is not None:
            self._lock.abandon()
        self._lock = None

    def _write(self, anchored: Anchored) -> None:
        head = anchored.head
        slot = _SLOT.pack(_MARK, anchored.turn, anchored.era, head.seq, head.size, bytes.fromhex(head.entry_hash))
        slot += _CHECK.pack(crc32(slot))
        place = _SECTOR * (anchored.turn & 1)
        told, self._told = self._told, b""
        if os.pwrite(self._descriptor, slot, place) != len(slot):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._told = told[:place].ljust(place, b"\0") + slot + told[place + len(slot) :]
        self.known = anchored


def _newest(told: bytes) -> Anchored | None:
    """The sound slot with the higher turn. The one that claims it is looked at first, the other only if it is torn."""
    turns = [_TURN.unpack_from(told, place)[0] if len(told) >= place + _SLOT.size else -1 for place in (0, _SECTOR)]
    first = 0 if turns[0] > turns[1] else _SECTOR
    return _parsed(told, first) or _parsed(told, _SECTOR - first)


def _parsed(told: bytes, start: int) -> Anchored | None:
    slot, check = told[start : start + _SLOT.size], told[start + _SLOT.size : start + _SLOT.size + _CHECK.size]
    if not slot.startswith(_MARK) or check != _CHECK.pack(crc32(slot)):
        return None
    _, turn, era, seq, size, entry_hash = _SLOT.unpack(slot)
    return Anchored(Head(seq, entry_hash.hex(), size), era, turn)
