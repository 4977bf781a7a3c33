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

from kaiza.domain.audit.record import LogHead
from kaiza.store.disk import state_dir
from kaiza.store.disk.file_lock import FileLock
from kaiza.store.disk.state_key import StateKey

_NAME = "anchor"
_NAMES = re.compile(r"anchor(-[0-9]+)?")
_OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_SECTOR = 512
_SLOT = struct.Struct(">8sQQQQ32s")
_CHECKSUM = struct.Struct(">L")
_WRITE_COUNT = struct.Struct(">8xQ")
_CHECK_INTERVAL = 16
_MAGIC = b"kaiza/1\n"
_SLOT_BYTES = _SLOT.size + _CHECKSUM.size


class CheckpointValue(NamedTuple):
    """What an anchor names. `era` counts how often a person has accepted a damaged log and begun a new one."""

    head: LogHead
    epoch: int
    write_count: int


class PreparedWrite(NamedTuple):
    """One step forward, ready to be written."""

    value: CheckpointValue
    slot: bytes


class Checkpoint:
    """One process's hand on the anchors of a workspace; one thread at a time, but for `read`."""

    def __init__(self, place: Path) -> None:
        self._state_path = place
        self._descriptor = -1
        self._lock: FileLock | None = None
        self._uses = 0
        self._closed = False
        self._own_value: CheckpointValue | None = None

    def read(self) -> CheckpointValue | None:
        """The newest head that any process has anchored, or None where there is none."""
        return max(self._read_all(), key=lambda one: (one.epoch, one.head.seq), default=None)

    def prepare(self, head: LogHead, era: int) -> PreparedWrite | None:
        """What `take` has to write once this head is durable; nothing where our anchor is as far already.

        OSError where there can be no anchor.
        """
        self._ensure_claimed()
        own = self._own_value
        if own is not None and (own.epoch, own.head.seq) >= (era, head.seq):
            return None
        return _prepare_write(head, era, own.write_count + 1 if own else 0)

    def write(self, step: PreparedWrite) -> None:
        """Our anchor names the head of this step when this returns."""
        if os.pwrite(self._descriptor, step.slot, _SECTOR * (step.value.write_count & 1)) != _SLOT_BYTES:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._own_value = step.value

    def reset(self, head: LogHead) -> None:
        """A person accepted a new log: this is its head, durably, in a new era, in which the old one has no say."""
        newest = self.read()
        step = self.prepare(head, newest.epoch + 1 if newest else 1)
        if step is not None:
            self.write(step)
        os.fsync(self._descriptor)
        state_dir.sync_directory(self._state_path)

    def close(self) -> None:
        """Leave our anchor to the next process. Whoever comes late is refused, and writes into nothing."""
        self._closed = True
        self._release_file()

    def _read_all(self) -> Iterator[CheckpointValue]:
        try:
            names = os.listdir(self._state_path)  # noqa: PTH208  a glob would pass over a directory that it may not read
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in filter(_NAMES.fullmatch, names):
            with suppress(FileNotFoundError):
                found = _newest_slot((self._state_path / name).read_bytes())
                if found is not None:
                    yield found

    def _ensure_claimed(self) -> None:
        """The first anchor that no living process has. A deleted one is noticed before long."""
        if self._closed:
            raise OSError(errno.ESHUTDOWN, os.strerror(errno.ESHUTDOWN))
        self._uses += 1
        if self._lock is not None and self._uses % _CHECK_INTERVAL == 0 and os.fstat(self._descriptor).st_nlink == 0:
            self._release_file()
        if self._lock is not None:
            return
        self._state_path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if next(self._read_all(), None) is None:
            StateKey(
                self._state_path
            ).ensure_exists()  # an anchor without a key beside it is one that a version without keys made
        for number in count(1):
            if self._try_claim(self._state_path / (f"{_NAME}-{number}" if number > 1 else _NAME)):
                break

    def _try_claim(self, path: Path) -> bool:
        """Whether this one is ours now; not where somebody else has it, or it is another account's."""
        try:
            descriptor = os.open(path, _OPEN_FLAGS, 0o600)
        except PermissionError:
            if not path.exists():
                raise
            return False
        lock = FileLock(descriptor)
        try:
            if not lock.try_acquire():
                lock.close()
                return False
            state_dir.give_to_owner(self._state_path, descriptor)
            own = _newest_slot(os.pread(descriptor, _SECTOR + _SLOT_BYTES, 0))
        except BaseException:
            lock.close()
            raise
        self._lock, self._descriptor, self._own_value = lock, descriptor, own
        return True

    def _release_file(self) -> None:
        if self._lock is not None:
            self._lock.close()
        self._lock, self._descriptor, self._own_value = None, -1, None


def _prepare_write(head: LogHead, era: int, turn: int) -> PreparedWrite:
    slot = _SLOT.pack(_MAGIC, turn, era, head.seq, head.size, bytes.fromhex(head.entry_hash))
    return PreparedWrite(CheckpointValue(head, era, turn), slot + _CHECKSUM.pack(crc32(slot)))


def _newest_slot(told: bytes) -> CheckpointValue | None:
    """The sound slot with the higher turn. The one that claims it is looked at first, the other only if it is torn."""
    slots = told[:_SLOT_BYTES], told[_SECTOR : _SECTOR + _SLOT_BYTES]
    first, second = (_WRITE_COUNT.unpack_from(slot)[0] if len(slot) == _SLOT_BYTES else -1 for slot in slots)
    newer, older = slots if first > second else slots[::-1]
    return _parse_slot(newer) or _parse_slot(older)


def _parse_slot(whole: bytes) -> CheckpointValue | None:
    slot, check = whole[: _SLOT.size], whole[_SLOT.size :]
    if not slot.startswith(_MAGIC) or check != _CHECKSUM.pack(crc32(slot)):
        return None
    _, turn, era, seq, size, entry_hash = _SLOT.unpack(slot)
    return CheckpointValue(LogHead(seq, entry_hash.hex(), size), era, turn)
