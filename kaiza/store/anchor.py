"""The head of the log, kept outside the workspace: only ever forward, and never a record that is not durable.

Every process that syncs has an anchor of its own and writes it without waiting for anybody; the newest one counts.
Two slots take turns in it, each in a sector and with a checksum, so that a torn write leaves the other one. It is not
synced: after a power cut it may be older than the log, a lower bound and never a false alarm.
"""

import errno
import os
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from kaiza.domain.record import Head
from kaiza.store import state
from kaiza.store.lock import FileLock
from kaiza.store.state_key import StateKey

_NAME = "anchor"
_NAMES = re.compile(r"anchor(-[0-9]+)?")
_HOW = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_SECTOR = 512
_SLOT = struct.Struct(">8sQQQQ32s")
_CHECK = struct.Struct(">L")
_TURN = struct.Struct(">8xQ")
_NOW_AND_THEN = 16
_MARK = b"kaiza/1\n"
_WHOLE = _SLOT.size + _CHECK.size


class Anchored(NamedTuple):
    """What an anchor names. `era` counts how often a person has accepted a damaged log and begun a new one."""

    head: Head
    era: int
    turn: int


class Step(NamedTuple):
    """One step forward, ready to be written."""

    anchored: Anchored
    slot: bytes


class Anchor:
    """One process's hand on the anchors of a workspace; one thread at a time, but for `read`."""

    def __init__(self, place: Path) -> None:
        self._state = place
        self._descriptor = -1
        self._lock: FileLock | None = None
        self._uses = 0
        self._closed = False
        self._own: Anchored | None = None

    def read(self) -> Anchored | None:
        """The newest head that any process has anchored, or None where there is none."""
        return max(self._all(), key=lambda one: (one.era, one.head.seq), default=None)

    def step(self, head: Head, era: int) -> Step | None:
        """What `take` has to write once this head is durable; nothing where our anchor is as far already.

        OSError where there can be no anchor.
        """
        self._make_sure_of_our_own()
        own = self._own
        if own is not None and (own.era, own.head.seq) >= (era, head.seq):
            return None
        return _step_to(head, era, own.turn + 1 if own else 0)

    def take(self, step: Step) -> None:
        """Our anchor names the head of this step when this returns."""
        if os.pwrite(self._descriptor, step.slot, _SECTOR * (step.anchored.turn & 1)) != _WHOLE:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._own = step.anchored

    def begin_anew(self, head: Head) -> None:
        """A person accepted a new log: this is its head, durably, in a new era, in which the old one has no say."""
        newest = self.read()
        step = self.step(head, newest.era + 1 if newest else 1)
        if step is not None:
            self.take(step)
        os.fsync(self._descriptor)
        state.sync_directory(self._state)

    def close(self) -> None:
        """Leave our anchor to the next process. Whoever comes late is refused, and writes into nothing."""
        self._closed = True
        self._let_go()

    def _all(self) -> Iterator[Anchored]:
        try:
            names = os.listdir(self._state)  # noqa: PTH208  a glob would pass over a directory that it may not read
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in filter(_NAMES.fullmatch, names):
            with suppress(FileNotFoundError):
                found = _newest((self._state / name).read_bytes())
                if found is not None:
                    yield found

    def _make_sure_of_our_own(self) -> None:
        """The first anchor that no living process has. A deleted one is noticed before long."""
        if self._closed:
            raise OSError(errno.ESHUTDOWN, os.strerror(errno.ESHUTDOWN))
        self._uses += 1
        if self._lock is not None and self._uses % _NOW_AND_THEN == 0 and os.fstat(self._descriptor).st_nlink == 0:
            self._let_go()
        if self._lock is not None:
            return
        self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
        if next(self._all(), None) is None:
            StateKey(self._state).require()  # an anchor without a key beside it is one that a version without keys made
        for number in count(1):
            if self._claimed(self._state / (f"{_NAME}-{number}" if number > 1 else _NAME)):
                break

    def _claimed(self, path: Path) -> bool:
        """Whether this one is ours now; not where somebody else has it, or it is another account's."""
        try:
            descriptor = os.open(path, _HOW, 0o600)
        except PermissionError:
            if not path.exists():
                raise
            return False
        lock = FileLock(descriptor)
        try:
            if not lock.taken():
                lock.abandon()
                return False
            state.give_to_owner(self._state, descriptor)
            own = _newest(os.pread(descriptor, _SECTOR + _WHOLE, 0))
        except BaseException:
            lock.abandon()
            raise
        self._lock, self._descriptor, self._own = lock, descriptor, own
        return True

    def _let_go(self) -> None:
        if self._lock is not None:
            self._lock.abandon()
        self._lock, self._descriptor, self._own = None, -1, None


def _step_to(head: Head, era: int, turn: int) -> Step:
    slot = _SLOT.pack(_MARK, turn, era, head.seq, head.size, bytes.fromhex(head.entry_hash))
    return Step(Anchored(head, era, turn), slot + _CHECK.pack(crc32(slot)))


def _newest(told: bytes) -> Anchored | None:
    """The sound slot with the higher turn. The one that claims it is looked at first, the other only if it is torn."""
    slots = told[:_WHOLE], told[_SECTOR : _SECTOR + _WHOLE]
    first, second = (_TURN.unpack_from(slot)[0] if len(slot) == _WHOLE else -1 for slot in slots)
    newer, older = slots if first > second else slots[::-1]
    return _parsed(newer) or _parsed(older)


def _parsed(whole: bytes) -> Anchored | None:
    slot, check = whole[: _SLOT.size], whole[_SLOT.size :]
    if not slot.startswith(_MARK) or check != _CHECK.pack(crc32(slot)):
        return None
    _, turn, era, seq, size, entry_hash = _SLOT.unpack(slot)
    return Anchored(Head(seq, entry_hash.hex(), size), era, turn)
