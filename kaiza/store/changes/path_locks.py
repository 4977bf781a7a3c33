"""Changes to one path take turns, across threads and processes; sorted, so that two never wait for each other."""

import os
import zlib
from collections.abc import Iterable
from contextlib import ExitStack

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.disk.file_lock import FileLock
from kaiza.store.disk.kaiza_dir import KaizaDir

STRIPES = 64
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def acquire(own: KaizaDir, paths: Iterable[RelPath], seconds: float) -> ExitStack:
    """Hold the turn for every path until the stack is closed; FILE_WRITE_FAILED where it does not come in time."""
    stripes = sorted({zlib.crc32(path.to_bytes()) % STRIPES for path in paths})
    where = own.open_directory("locks")
    with ExitStack() as held:
        for stripe in stripes:
            lock = FileLock(os.open(f"{stripe:02x}", _OPEN, 0o600, dir_fd=where))
            held.callback(lock.close)
            try:
                lock.acquire(seconds)
            except errors.SystemError as late:
                raise errors.SystemError.tool_failure(
                    "FILE_WRITE_FAILED",
                    human_message="Another change to the same files is still under way. Try again.",
                    cause=late.cause,
                ) from late
        return held.pop_all()
