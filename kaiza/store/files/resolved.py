"""Result of resolving a path, held by descriptor, so that what is opened is what was checked."""

import errno
import os
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.disk.small_files import NONBLOCKING_FLAGS

HANDLE_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC
_SWAPPED_ERRNOS = {errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.ENXIO}


@dataclass(slots=True)
class OwnedDescriptor:
    """A file descriptor that is closed at the end of a `with`."""

    fd: int

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(slots=True)
class ResolvedPath(OwnedDescriptor):
    """What a path leads to, not opened yet: no device was touched and no FIFO was woken.

    `fd` is an O_PATH handle of the file itself or, where `name` is set, of the directory that contains it.
    """

    real: RelPath
    stat: os.stat_result
    name: bytes | None = None

    def open(self, flags: int) -> int:
        """Open the file with these flags; EAGAIN where it was replaced since it was resolved."""
        # Through /proc the handle itself is reopened, whatever its path leads to by now.
        if self.name is None:
            return os.open(f"/proc/self/fd/{self.fd}", flags | NONBLOCKING_FLAGS)
        try:
            fd = os.open(self.name, flags | NONBLOCKING_FLAGS | os.O_NOFOLLOW, dir_fd=self.fd)
        except OSError as error:
            if error.errno in _SWAPPED_ERRNOS:
                raise swapped_error() from error
            raise
        # O_NOFOLLOW refuses a link, but not another file or a directory that was moved here.
        if os.path.samestat(os.fstat(fd), self.stat):
            return fd
        os.close(fd)
        raise swapped_error()


def swapped_error() -> OSError:
    """EAGAIN: the file was replaced while it was resolved, and `ConfinedRoot` tries again."""
    return OSError(errno.EAGAIN, "replaced while it was resolved")
