"""Checkpoint: the head of the log, kept outside the workspace, so that a truncated or replaced log is detected.

It only moves forward, and never names a record that is not durable. Each process writes a checkpoint file of its own
(`anchor`, `anchor-2`, …) without waiting for another process; the newest one counts. A file has two slots, written in
turn, each in its own sector and with a checksum, so that a torn write leaves the other slot. It is not fsynced: after
a power cut it may be older than the log, which is still a valid lower bound and never a false alarm.
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
from kaiza.store.disk import small_files
from kaiza.store.disk.file_lock import FileLock
from kaiza.store.disk.state_key import StateKey

_NAME = "anchor"
_NAMES = re.compile(r"anchor(-[0-9]+)?")
_MAX_FILE_BYTES = 1 << 12
# A disk writes a sector of 512 bytes whole or not at all.
_SECTOR = 512
# Magic, write count, epoch, seq, size, entry hash; then a CRC-32 of these.
_SLOT = struct.Struct(">8sQQQQ32s")
_CHECKSUM = struct.Struct(">L")
_WRITE_COUNT = struct.Struct(">8xQ")
_CHECK_INTERVAL = 16
_MAGIC = b"kaiza/1\n"
_SLOT_BYTES = _SLOT.size + _CHECKSUM.size


class CheckpointValue(NamedTuple):
    """Content of a slot. `epoch` counts how often a person has accepted a damaged log, which begins a new one."""

    head: LogHead
    epoch: int
    write_count: int


class PreparedWrite(NamedTuple):
    """Slot that is ready to be written once its head is durable."""

    value: CheckpointValue
    slot: bytes


class Checkpoint:
    """One process's access to the checkpoints of a workspace. Not thread-safe, except for `read`."""

    def __init__(self, directory: Path) -> None:
        self._state_path = directory
        self._descriptor = -1
        self._lock: FileLock | None = None
        self._uses = 0
        self._closed = False
        self._own_value: CheckpointValue | None = None

    def read(self) -> CheckpointValue | None:
        """The newest checkpoint of any process, or None."""
        # By epoch first: a process that still syncs the log from before an acceptance must not outrank the new log.
        return max(self._read_all(), key=lambda value: (value.epoch, value.head.seq), default=None)

    def prepare(self, head: LogHead, epoch: int) -> PreparedWrite | None:
        """The slot to write once this head is durable; None if this process's checkpoint is as new already.

        OSError if there can be no checkpoint. Called before the log is fsynced, so that such an error refuses the
        record early and only one small write is left to do after the fsync.
        """
        self._ensure_claimed()
        own = self._own_value
        if own is not None and (own.epoch, own.head.seq) >= (epoch, head.seq):
            return None
        write_count = own.write_count + 1 if own else 0
        slot = _SLOT.pack(_MAGIC, write_count, epoch, head.seq, head.size, bytes.fromhex(head.entry_hash))
        return PreparedWrite(CheckpointValue(head, epoch, write_count), slot + _CHECKSUM.pack(crc32(slot)))

    def write(self, prepared: PreparedWrite) -> None:
        """Write a slot. The caller has made its head durable."""
        # The slots take turns, so the newest value is never the one that is overwritten.
        offset = _SECTOR * (prepared.value.write_count & 1)
        if os.pwrite(self._descriptor, prepared.slot, offset) != _SLOT_BYTES:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._own_value = prepared.value

    def reset(self, head: LogHead) -> None:
        """Begin a new epoch with the head of the log that a person's acceptance has begun.

        Unlike other writes this one is fsynced, name included: an older checkpoint would declare the new log replaced.
        """
        newest = self.read()
        prepared = self.prepare(head, newest.epoch + 1 if newest else 1)
        if prepared is not None:
            self.write(prepared)
        os.fsync(self._descriptor)
        small_files.sync_directory(self._state_path)

    def close(self) -> None:
        """Release this process's file to the next process. Later calls of `prepare` and `write` raise OSError."""
        self._closed = True
        self._release_file()

    def _read_all(self) -> Iterator[CheckpointValue]:
        try:
            names = os.listdir(self._state_path)  # noqa: PTH208  a glob skips a directory that it may not read
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in filter(_NAMES.fullmatch, names):
            with suppress(FileNotFoundError):
                value = _newest_slot(small_files.read(self._state_path / name, _MAX_FILE_BYTES))
                if value is not None:
                    yield value

    def _ensure_claimed(self) -> None:
        """Claim the first checkpoint file that no living process has locked, and keep it for the process's life."""
        if self._closed:
            raise OSError(errno.ESHUTDOWN, os.strerror(errno.ESHUTDOWN))
        self._uses += 1
        # If the state directory is deleted under a running server, writes to the old file protect nothing.
        if self._lock is not None and self._uses % _CHECK_INTERVAL == 0 and os.fstat(self._descriptor).st_nlink == 0:
            self._release_file()
        if self._lock is not None:
            return
        self._state_path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if next(self._read_all(), None) is None:
            # Before the first checkpoint: a checkpoint without a key beside it means that a version without keys
            # wrote it, whose journals would then be trusted without a code.
            StateKey(self._state_path).ensure_exists()
        for number in count(1):
            if self._try_claim(self._state_path / (f"{_NAME}-{number}" if number > 1 else _NAME)):
                break

    def _try_claim(self, path: Path) -> bool:
        try:
            descriptor = small_files.open_for_update(path, create=True)
        except PermissionError:
            if not path.exists():
                raise
            return False  # it belongs to another account
        lock = FileLock(descriptor)
        try:
            if not lock.try_acquire():
                lock.close()
                return False
            small_files.give_to_owner(descriptor, self._state_path)
            # Its write count continues: a slot with a lower count would lose against the newest one.
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


def _newest_slot(content: bytes) -> CheckpointValue | None:
    """The valid slot with the higher write count."""
    slots = content[:_SLOT_BYTES], content[_SECTOR : _SECTOR + _SLOT_BYTES]
    first, second = (_WRITE_COUNT.unpack_from(slot)[0] if len(slot) == _SLOT_BYTES else -1 for slot in slots)
    newer, older = slots if first > second else slots[::-1]
    return _parse_slot(newer) or _parse_slot(older)


def _parse_slot(content: bytes) -> CheckpointValue | None:
    slot, checksum = content[: _SLOT.size], content[_SLOT.size :]
    if not slot.startswith(_MAGIC) or checksum != _CHECKSUM.pack(crc32(slot)):
        return None
    _, write_count, epoch, seq, size, entry_hash = _SLOT.unpack(slot)
    return CheckpointValue(LogHead(seq, entry_hash.hex(), size), epoch, write_count)
