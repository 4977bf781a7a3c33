"""Open files: complete reads and writes in chunks, hashes, leases, stamps that change with the content."""

import ctypes
import errno
import fcntl
import hashlib
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from typing import Protocol

MAX_PACKED_BYTES = 1 << 20
"""The largest content that the blob store compresses; a larger file is stored as it is."""
FIRST_CHUNK_BYTES = 1 << 16
CHUNK_BYTES = 1 << 20
_MEMORY = frozenset({0x01021994, 0x858458F6, 0x958458F6})
"""tmpfs, ramfs, hugetlbfs."""
_LIBC = ctypes.CDLL(None, use_errno=True)
_STATFS_BYTES = 256


class Hasher(Protocol):
    """A hash object of `hashlib`."""

    def update(self, data: bytes, /) -> None:
        """Add bytes to the hash."""
        ...


def read_range(fd: int, start: int, end: int) -> bytes:
    """Read the bytes from `start` to `end`; fewer if the file ends before."""
    content = os.pread(fd, max(0, end - start), start)
    while len(content) < end - start:
        more = os.pread(fd, end - start - len(content), start + len(content))
        if not more:
            break
        content += more
    return content


def read_all(fd: int) -> Iterator[bytes]:
    """Read an open file from its beginning to its end, a chunk at a time."""
    # A buffer of 256 KiB or more is mapped and unmapped at each read, which costs a small file 20 us.
    offset, size = 0, FIRST_CHUNK_BYTES
    while chunk := os.pread(fd, size, offset):
        offset, size = offset + len(chunk), CHUNK_BYTES
        yield chunk


def next_data(fd: int, start: int, end: int) -> int:
    """Offset of the next byte from `start` on that is not in a hole of a sparse file; `end` if there is none before."""
    try:
        return min(end, os.lseek(fd, start, os.SEEK_DATA))
    except OSError as error:
        return end if error.errno == errno.ENXIO else start  # other systems cannot tell: nothing is skipped


def last_data_end(fd: int, end: int) -> int:
    """End of the last data before `end`; what lies between is a hole. 0 if there is no data."""
    begin, step = end, MAX_PACKED_BYTES
    while (at := next_data(fd, begin, end)) >= end and begin > 0:
        begin, step = max(0, begin - step), 2 * step
    while at < end:
        try:
            hole = min(end, os.lseek(fd, at, os.SEEK_HOLE))
        except OSError:
            return end
        at = next_data(fd, hole, end)
        if at >= end:
            return hole
    return 0


def write_all(fd: int, content: Iterable[bytes]) -> None:
    """Write all chunks. One `write` may take only part of a chunk."""
    for chunk in content:
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(fd, rest) :]


def update_hash(digest: Hasher, content: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks unchanged and add each to a hash."""
    for chunk in content:
        digest.update(chunk)
        yield chunk


def hash_content(content: Iterable[bytes]) -> str:
    """SHA-256 of all chunks together, in hexadecimal."""
    digest = hashlib.sha256()
    for chunk in content:
        digest.update(chunk)
    return digest.hexdigest()


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


def file_stamp(status: os.stat_result) -> tuple[int, ...]:
    """Device, inode, size and both times: at least one of them changes with every write to the file."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def name_stamp(path: str | os.PathLike[str]) -> tuple[int, ...] | None:
    """The stamp of the file that has this name now; None if there is none."""
    try:
        return file_stamp(os.stat(path))  # noqa: PTH116  on the path of every call; three times as fast as Path.stat
    except OSError:
        return None


def keeps_times(fd: int) -> bool:
    """Whether each change of a file changes its times: not in memory, where stores through a mapping leave them."""
    if sys.platform != "linux":
        return True
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if _LIBC.fstatfs(fd, buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    # The type is the first member of `struct statfs`; the kernel's constants have 32 bits.
    kind = int.from_bytes(buffer.raw[: ctypes.sizeof(ctypes.c_long)], sys.byteorder) & 0xFFFFFFFF
    return kind not in _MEMORY
