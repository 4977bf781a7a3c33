"""Which processes are alive: each holds the lock on a file of its own, which the kernel lets go of with the process."""

import fcntl
import os
from contextlib import suppress

from kaiza.store.disk.kaiza_dir import KaizaDir

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_EXCLUSIVE_NONBLOCKING = fcntl.LOCK_EX | fcntl.LOCK_NB


class LivenessLock:
    """The sign of life of one process. Its `id` is what intents name."""

    def __init__(self, own: KaizaDir) -> None:
        self._kaiza_dir = own
        self.id, self._fd = self._create_file()

    def is_dead(self, other: str) -> bool:
        """Whether the process of that id is gone; one that never was is gone too."""
        if other == self.id:
            return False
        if not other.replace("-", "").isalnum():
            return True
        try:
            fd = os.open(other, _OPEN, dir_fd=self._kaiza_dir.open_directory("live"))
        except PermissionError:
            return False  # another account's
        except OSError:
            return True
        try:
            return _try_lock(fd)
        finally:
            os.close(fd)

    def remove_dead(self) -> None:
        """Clear away the signs of processes that are gone."""
        where = self._kaiza_dir.open_directory("live")
        for name in os.listdir(where):  # noqa: PTH208 (of a descriptor)
            if name == self.id:
                continue
            with suppress(FileNotFoundError):
                fd = os.open(name, _OPEN, dir_fd=where)
                try:
                    if _try_lock(fd):
                        os.unlink(name, dir_fd=where)
                finally:
                    os.close(fd)

    def close(self) -> None:
        """Be gone."""
        with suppress(FileNotFoundError):
            os.unlink(self.id, dir_fd=self._kaiza_dir.open_directory("live"))
        os.close(self._fd)

    def _create_file(self) -> tuple[str, int]:
        """Take a fresh file; one that was swept away before it was locked does not count."""
        while True:
            name = f"{os.getpid()}-{os.urandom(8).hex()}"
            fd = os.open(name, _CREATE, 0o600, dir_fd=self._kaiza_dir.open_directory("live"))
            fcntl.flock(fd, fcntl.LOCK_EX)
            if os.fstat(fd).st_nlink:
                return name, fd
            os.close(fd)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, _EXCLUSIVE_NONBLOCKING)
    except BlockingIOError:
        return False
    return True
