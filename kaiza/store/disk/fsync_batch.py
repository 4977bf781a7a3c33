"""Fsync several files in parallel."""

import ctypes
import functools
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

MAX_SINGLE_FSYNCS = 4
"""Up to this number of changed files each is fsynced; for more, one `syncfs` covers the file system.

`syncfs` also waits for whatever other programs are writing there, so for few files it is the slower way.
"""
# Bounds the open descriptors of a change of many files.
_MAX_OPEN = 16
_WORKERS = 4
_LIBC = ctypes.CDLL(None, use_errno=True)
_SYNCFS: Callable[[int], int] | None = getattr(_LIBC, "syncfs", None)


class FsyncBatch:
    """Collects written descriptors and fsyncs them as one batch.

    Owns and closes the descriptors passed to `add`, but not those passed to `add_borrowed`. If more than
    MAX_SINGLE_FSYNCS files change, it calls `syncfs` on `file_system` instead, where the system has it.
    """

    def __init__(self, files: int = 1, file_system: int = -1) -> None:
        self._file_system = file_system if files > MAX_SINGLE_FSYNCS and _SYNCFS is not None else -1
        self._owned: list[int] = []
        self._borrowed: list[int] = []

    def add(self, fd: int) -> None:
        """Take ownership of a descriptor. A full batch is synced at once, so that few descriptors are open."""
        if self._file_system >= 0:
            # `syncfs` writes back closed files too.
            os.close(fd)
            return
        self._owned.append(fd)
        if len(self._owned) >= _MAX_OPEN:
            fsync_all(self._owned)
            self.close()

    def add_borrowed(self, fd: int) -> None:
        """Add a descriptor that the caller keeps open until `sync`; adding it twice syncs it once."""
        if self._file_system < 0 and fd not in self._borrowed:
            self._borrowed.append(fd)

    def sync(self) -> None:
        """Fsync the batch. OSError if any file could not be written to disk."""
        if self._file_system >= 0:
            _sync_file_system(self._file_system)
        fsync_all([*self._owned, *self._borrowed])
        self._borrowed.clear()
        self.close()

    def close(self) -> None:
        """Close the owned descriptors without syncing them."""
        while self._owned:
            os.close(self._owned.pop())


def fsync_all(fds: Sequence[int]) -> None:
    """Fsync files in parallel, so that they share one commit of the file system and one flush of the disk.

    Every fsync has ended when this returns or raises OSError, so the caller may close the descriptors.
    """
    # Errors are collected here and not in the futures: the kernel reports a lost write once per open file, and the
    # future of a task whose thread could not be started is lost. After such a failure to start, the fsyncs below
    # would succeed although the write was lost.
    failed: list[OSError] = []

    def fsync(fd: int) -> None:
        try:
            os.fsync(fd)
        except OSError as error:
            failed.append(error)

    if len(fds) < 2 or not _run_in_parallel(fsync, fds):  # noqa: PLR2004
        for fd in fds:
            fsync(fd)
    if failed:
        raise failed[0]


def _run_in_parallel(fsync: Callable[[int], None], fds: Sequence[int]) -> bool:
    """Return False if not all calls could be made; then none is still running."""
    executor = _executor()
    try:
        list(executor.map(fsync, fds))
    except RuntimeError:  # no thread can be started, or the interpreter is exiting
        _executor.cache_clear()
        executor.shutdown()
        return False
    return True


@functools.cache
def _executor() -> "ThreadPoolExecutor":
    """Thread pool of the process. Starting four threads for each batch takes longer than the fsyncs themselves."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  9 ms that only a change needs

    return ThreadPoolExecutor(_WORKERS, "kaiza-fsync")


os.register_at_fork(after_in_child=_executor.cache_clear)  # a child has none of the pool's threads


def _sync_file_system(fd: int) -> None:
    if _SYNCFS is not None and _SYNCFS(fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
