"""One sync for all who wait for the disk at the same moment: whoever comes first syncs, and it counts for the others.

They go by rounds, numbered in a file beside the anchors; a round counts for what was written before it began. Nobody
depends on it: who has waited long, be it for a process that was stopped in its round, syncs without the others.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from struct import Struct
from zlib import crc32

from kaiza.store import state
from kaiza.store.log_file import LogFile

_NAME = "rounds"
_HOW = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_TOLD = Struct("=QQ24s")
_CHECK = Struct("=L")
_WHOLE = _TOLD.size + _CHECK.size
_NEVER = 2**64 - 1
_LOOKS = 300
_ALONE = 32
"""Who looked so often in vain, as the disk is slow or somebody was stopped, syncs alone so many times after that."""
_DOUBT = 32
"""After so many looks at a round that does not end, whether somebody is still in it."""


_Round = tuple[int, int, bytes]
"""The last round that began, the last that came to its end, and the file that was synced in that one."""

_UNKNOWN: _Round = (_NEVER, _NEVER, b"")


class Rounds:
    """One process's part in them; one thread at a time."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._descriptor = -1
        self._alone = 0

    def sync(self, file: LogFile) -> None:
        """What was written to this file before this call is on the disk when this returns. OSError where it is not."""
        if not (file.hears_losses and self._takes_part() and self._synced(file)):
            os.fdatasync(file.descriptor)

    def close(self) -> None:
        """Let go of the file, and of the round, if we are in one."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _takes_part(self) -> bool:
        """Not where that was in vain, or there is no place for the file: then we sync on our own."""
        if self._alone > 0:
            self._alone -= 1
            return False
        if self._descriptor < 0:
            with suppress(OSError):
                self._descriptor = os.open(self._place / _NAME, _HOW, 0o600)
                state.give_to_owner(self._place, self._descriptor)
        return self._descriptor >= 0

    def _synced(self, file: LogFile) -> bool:
        """Whether a round that began since has ended, be it our own; False where that takes too long."""
        since, _, _ = self._look()
        os.sched_yield()  # whoever writes now is in our round already
        for look in range(_LOOKS):
            began, done, synced = self._look()
            if done > since and synced == file.identity:
                file.take_for_synced()
                return True
            if (began == done or look % _DOUBT == _DOUBT - 1) and self._is_free():
                try:
                    return self._led(file, since)
                finally:
                    self._leave()
            os.sched_yield()
        self._alone = _ALONE
        return False

    def _is_free(self) -> bool:
        """Whether nobody was in a round; then we are."""
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    def _leave(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        except OSError:
            self.close()

    def _led(self, file: LogFile, since: int) -> bool:
        """A round of our own, unless one that counts has just ended. False where its beginning cannot be told."""
        began, done, synced = self._look()
        if done > since and synced == file.identity:
            file.take_for_synced()
            return True
        number = (began + 1) & _NEVER
        if not self._tell((number, done, synced)):
            return False
        os.fdatasync(file.descriptor)
        self._tell((number, number, file.identity))
        return True

    def _look(self) -> _Round:
        """How far they are. What cannot be read, or is not whole, counts for nobody."""
        try:
            told = os.pread(self._descriptor, _WHOLE, 0)
        except OSError:
            return _UNKNOWN
        if len(told) != _WHOLE or told[_TOLD.size :] != _CHECK.pack(crc32(told[: _TOLD.size])):
            return _UNKNOWN
        return _TOLD.unpack_from(told)

    def _tell(self, seen: _Round) -> bool:
        told = _TOLD.pack(*seen)
        try:
            return os.pwrite(self._descriptor, told + _CHECK.pack(crc32(told)), 0) == _WHOLE
        except OSError:
            return False
