"""Descriptors read and written whole: open flags, chunks, leases, and the stamp that changes with a file's bytes."""

import fcntl
import os
import signal
from collections.abc import Iterable, Iterator
from typing import Protocol

MAX_PACKED_BYTES = 1 << 20
"""The longest content that is compressed and copied; a larger file is taken over as it is."""
FIRST_CHUNK_BYTES = 1 << 16
CHUNK_BYTES = 1 << 20
NONBLOCKING_FLAGS = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
READ_NOFOLLOW = os.O_RDONLY | os.O_NOFOLLOW | NONBLOCKING_FLAGS
"""How to open a name for reading where a link, a pipe or a terminal may be by now."""


class Hasher(Protocol):
    """A hash that is updated while bytes pass."""

    def update(self, data: bytes, /) -> None:
        """Add the bytes."""
        ...


def read_all(fd: int) -> Iterator[bytes]:
    """Read an open file from its beginning to its end, a chunk at a time."""
    offset, size = 0, FIRST_CHUNK_BYTES  # a small file takes no large buffer
    while chunk := os.pread(fd, size, offset):
        offset, size = offset + len(chunk), CHUNK_BYTES
        yield chunk


def write_all(fd: int, content: Iterable[bytes]) -> None:
    """Write every byte, however few the system takes at a time."""
    for chunk in content:
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(fd, rest) :]


def update_hash(check: Hasher, content: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks unchanged and add each to a hash."""
    for chunk in content:
        check.update(chunk)
        yield chunk


def has_no_writer(fd: int) -> bool:
    """Whether no process has the file open for writing; False where the system cannot tell."""
    try:
        # A read lease is refused while the file is open for writing. SIGIO, the default signal of a lease that is
        # broken, would end the process; SIGURG is ignored.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except (AttributeError, OSError):
        return False
    return True


def file_stamp(found: os.stat_result) -> tuple[int, ...]:
    """What a file cannot keep while its bytes change: its identity, its size and its times."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
