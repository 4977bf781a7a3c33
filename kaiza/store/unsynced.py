"""What was written and is not on disk yet: the disk begins with all of it at once, and then each is waited for."""

import ctypes
import os
from collections.abc import Callable

FEW = 4
_MOST = 16
_SYNC_FILE_RANGE_WRITE = 2
_LIBC = ctypes.CDLL(None, use_errno=True)
_SYNC_FILE_RANGE: Callable[[int, int, int, int], int] | None = getattr(_LIBC, "sync_file_range", None)
if _SYNC_FILE_RANGE is not None:
    _SYNC_FILE_RANGE.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)  # type: ignore[attr-defined]
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
        """Take a descriptor over; the disk may begin with it."""
        if self._file_system >= 0:
            os.close(fd)
            return
        self._fds.append(fd)
        begin(fd)
        if len(self._fds) >= _MOST:
            self._drain()

    def lend(self, fd: int) -> None:
        """The same with one that stays its owner's; it is waited for once, after the others."""
        if self._file_system < 0 and fd not in self._lent:
            self._lent.append(fd)
            begin(fd)

    def sync(self) -> None:
        """Wait until all of it is on disk."""
        if self._file_system >= 0:
            _sync_all(self._file_system)
        self._drain()
        for fd in self._lent:
            os.fsync(fd)
        self._lent.clear()

    def close(self) -> None:
        """Let go of what was not waited for."""
        while self._fds:
            os.close(self._fds.pop())

    def _drain(self) -> None:
        for fd in self._fds:
            os.fsync(fd)
        self.close()


def begin(fd: int) -> None:
    """Let the disk begin with what was written to a file, without waiting; where that lacks, it begins later."""
    if _SYNC_FILE_RANGE is not None:
        _SYNC_FILE_RANGE(fd, 0, 0, _SYNC_FILE_RANGE_WRITE)


def _sync_all(fd: int) -> None:
    if _SYNCFS is not None and _SYNCFS(fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
