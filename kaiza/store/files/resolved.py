"""One place that a path leads to, held by descriptor: what is opened is what was looked at."""

import errno
import os
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.disk.byte_io import NONBLOCKING_FLAGS

HANDLE_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC
_SWAPPED_ERRNOS = {errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.ENXIO}


@dataclass(slots=True)
class OwnedDescriptor:
    """A descriptor that is let go at the end of a `with`."""

    fd: int

    def close(self) -> None:
        """Let it go."""
        os.close(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(slots=True)
class ResolvedPath(OwnedDescriptor):
    """What a path leads to, not opened yet: nothing has been asked of a device or a pipe.

    `fd` is a handle of the thing itself or, with a name, of the directory in which that name stands.
    """

    real: RelPath
    stat: os.stat_result
    name: bytes | None = None

    def open(self, flags: int) -> int:
        """Open the thing for what the flags say; EAGAIN if another stands there by now."""
        if self.name is None:
            return os.open(f"/proc/self/fd/{self.fd}", flags | NONBLOCKING_FLAGS)
        try:
            fd = os.open(self.name, flags | NONBLOCKING_FLAGS | os.O_NOFOLLOW, dir_fd=self.fd)
        except OSError as error:
            if error.errno in _SWAPPED_ERRNOS:
                raise swapped_error() from error
            raise
        if os.path.samestat(os.fstat(fd), self.stat):
            return fd
        os.close(fd)
        raise swapped_error()


def swapped_error() -> OSError:
    """Tell that something was put in the way meanwhile, so that it is tried again."""
    return OSError(errno.EAGAIN, "swapped while it was looked at")
