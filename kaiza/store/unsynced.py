"""What was written and is not on disk yet, gathered, so that it is waited for all at once."""

import ctypes
import os
from collections.abc import Callable

from kaiza.store import together

FEW = 4
_MOST = 16
_LIBC = ctypes.CDLL(None, use_errno=True)
_SYNCFS: Callable[[int], int] | None = getattr(_LIBC, "syncfs", None)


class Unsynced:
    """Descriptors taken over with `add`, or lent; `sync` makes durable what they name, and closes what was taken over.

    Where many files change, the whole file system is written out in one call, if the system has it.
    """

    def __init__(self, files: int = 1, file_system: int = -1) -> None:
        self._file_system = file_system if files > FEW and _SYNCFS is not None else -1
        self._fds: list[int] = []
        self._lent: list[int] = []

    def add(self, fd: int) -> None:
        """Take a descriptor over."""
        if self._file_system >= 0:
            os.close(fd)
            return
        self._fds.append(fd)
        if len(self._fds) >= _MOST:
            together.sync(self._fds)
            self.close()

    def lend(self, fd: int) -> None:
        """The same with one that stays its owner's; it is waited for once."""
        if self._file_system < 0 and fd not in self._lent:
            self._lent.append(fd)

    def sync(self) -> None:
        """Wait until all of it is on disk."""
        if self._file_system >= 0:
            _sync_all(self._file_system)
        together.sync([*self._fds, *self._lent])
        self._lent.clear()
        self.close()

    def close(self) -> None:
        """Let go of what was not waited for."""
        while self._fds:
            os.close(self._fds.pop())


def _sync_all(fd: int) -> None:
    if _SYNCFS is not None and _SYNCFS(fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
