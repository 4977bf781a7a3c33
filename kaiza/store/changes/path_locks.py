"""Locks by path, across threads and processes: transactions that touch the same file run one after the other."""

import zlib
from collections.abc import Iterable
from contextlib import ExitStack

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.disk import small_files
from kaiza.store.disk.kaiza_dir import KaizaDir

# Paths share 64 lock files: nothing has to be created for each path, and none has to be cleaned up.
STRIPES = 64


def acquire(kaiza_dir: KaizaDir, paths: Iterable[RelPath], seconds: float) -> ExitStack:
    """Lock every path until the stack is closed; FILE_WRITE_FAILED where a lock is not free within `seconds`."""
    # Always in ascending order: two transactions that lock overlapping paths cannot deadlock.
    stripes = sorted({zlib.crc32(path.to_bytes()) % STRIPES for path in paths})
    dir_fd = kaiza_dir.open_directory("locks")
    with ExitStack() as stack:
        for stripe in stripes:
            lock = small_files.open_lock(f"{stripe:02x}", dir_fd)
            stack.callback(lock.close)
            try:
                lock.acquire(seconds)
            except errors.SystemError as timeout:
                raise errors.SystemError.tool_failure(
                    "FILE_WRITE_FAILED",
                    human_message="Another change to the same files is in progress. Try again.",
                    cause=timeout.cause,
                ) from timeout
        return stack.pop_all()
