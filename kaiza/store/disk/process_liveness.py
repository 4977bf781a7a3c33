"""Liveness of processes: each locks a file of its own, and the kernel releases the lock when the process ends.

A process id would not do: after a crash the system may have given it to another process.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress

from kaiza.store.disk import small_files
from kaiza.store.disk.kaiza_dir import KaizaDir


class LivenessLock:
    """Liveness file of one process. Intents and journals name its `id`."""

    def __init__(self, kaiza_dir: KaizaDir, prefix: str = "") -> None:
        self._kaiza_dir = kaiza_dir
        self.id, self.descriptor = self._create_file(prefix)

    def close(self) -> None:
        """Delete the file and release its lock."""
        with suppress(FileNotFoundError):
            os.unlink(self.id, dir_fd=self._kaiza_dir.open_directory("live"))
        os.close(self.descriptor)

    def _create_file(self, prefix: str) -> tuple[str, int]:
        while True:
            name = f"{prefix}{os.getpid()}-{os.urandom(8).hex()}"
            fd = small_files.create(name, self._kaiza_dir.open_directory("live"))
            fcntl.flock(fd, fcntl.LOCK_EX)
            # Another process's `remove_dead` may have deleted the file before it was locked.
            if os.fstat(fd).st_nlink:
                return name, fd
            os.close(fd)


def is_dead(kaiza_dir: KaizaDir, live_id: str) -> bool:
    """Whether the process with this id has ended; also True for an id that never existed. Writes nothing."""
    # The id comes from a journal or a log that may be hostile, and is used as a file name.
    if not live_id.replace("-", "").isalnum():
        return True
    try:
        directory = kaiza_dir.find_directory("live")
        if directory is None:
            return True
        fd = small_files.open_for_reading(live_id, directory)
    except PermissionError:
        return False  # it belongs to another account, which may be alive
    except OSError:
        return True
    try:
        # Shared: of two processes that look at the same time, neither takes the other for the owner.
        return try_lock(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def remove_dead(kaiza_dir: KaizaDir) -> Iterator[None]:
    """Delete the files of processes that have ended, with a yield after each file that was looked at."""
    listed = kaiza_dir.find_directory("live")
    for name in os.listdir(listed) if listed is not None else ():  # noqa: PTH208 (of a descriptor)
        with suppress(OSError):
            directory_fd = kaiza_dir.open_directory("live")
            fd = small_files.open_for_update(name, directory_fd)
            try:
                if try_lock(fd, fcntl.LOCK_EX):
                    os.unlink(name, dir_fd=directory_fd)
            finally:
                os.close(fd)
        yield


def is_locked(path: str) -> bool:
    """Whether a living process holds the lock on its file at this path, such as a journal that it is writing."""
    try:
        descriptor = small_files.open_for_reading(path)
    except OSError:
        return False
    try:
        # Shared, which is enough to meet a holder and does not turn away another process that looks.
        return not try_lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def try_lock(fd: int, kind: int) -> bool:
    """Whether an open file could be locked at once."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
