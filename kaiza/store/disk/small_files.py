"""Small files: opened, read, created, replaced and locked, never through a link and never waiting for a FIFO.

Any program of the user, a clone or an archive can put a link, a FIFO or a device where Kaiza expects a file of its
own. A name is a path, or relative to `dir_fd`, the descriptor of its directory.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from kaiza.store.disk.byte_io import read_range, write_all
from kaiza.store.disk.file_lock import FileLock

# O_NONBLOCK: opening a FIFO that was put in place of a file returns at once instead of waiting for a writer.
# O_NOCTTY: opening a terminal does not make it this process's controlling terminal.
NONBLOCKING_FLAGS = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
READ_NOFOLLOW = os.O_RDONLY | os.O_NOFOLLOW | NONBLOCKING_FLAGS
"""Flags to open a name for reading that may have been replaced by a symbolic link, a FIFO or a terminal."""
_UPDATE = os.O_RDWR | os.O_NOFOLLOW | NONBLOCKING_FLAGS
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# What `open` reports for a link, a socket and a directory.
_OTHER_KINDS = frozenset({errno.ELOOP, errno.ENXIO, errno.EISDIR})
Name = str | bytes | os.PathLike[str]


class NotRegularError(OSError):
    """Something other than a regular file has the name: a link, a FIFO, a directory, a device."""


def open_directory(name: Name, dir_fd: int | None = None, *, follow: bool = False) -> int:
    """Descriptor of a directory; only the last component of a path is protected against links."""
    return os.open(name, _DIRECTORY if follow else _DIRECTORY | os.O_NOFOLLOW, dir_fd=dir_fd)


def open_for_reading(name: Name, dir_fd: int | None = None) -> int:
    """Descriptor of a regular file. NotRegularError for anything else that has the name."""
    return _open_regular(name, READ_NOFOLLOW, 0, dir_fd)


def open_for_update(name: Name, dir_fd: int | None = None, *, create: bool = False, append: bool = False) -> int:
    """As `open_for_reading`, but for writing too. `create` makes a missing file, which only its owner can open."""
    flags = _UPDATE | (os.O_CREAT if create else 0) | (os.O_APPEND if append else 0)
    return _open_regular(name, flags, 0o600, dir_fd)


def create(name: Name, dir_fd: int | None = None, *, mode: int = 0o600, append: bool = False) -> int:
    """Descriptor of a new, empty file. FileExistsError if the name is taken, also by a dangling link."""
    flags = _UPDATE | os.O_CREAT | os.O_EXCL | (os.O_APPEND if append else 0)
    return os.open(name, flags, mode, dir_fd=dir_fd)


def read(
    name: Name, max_bytes: int, dir_fd: int | None = None, *, check: Callable[[os.stat_result], None] | None = None
) -> bytes:
    """The content of a regular file. OSError (EFBIG) if it is larger than `max_bytes`.

    `check` may refuse the open file for its owner or mode, by raising.
    """
    descriptor = open_for_reading(name, dir_fd)
    try:
        status = os.fstat(descriptor)
        if check is not None:
            check(status)
        if status.st_size > max_bytes:
            raise OSError(errno.EFBIG, "This file is too large", os.fspath(name))
        return read_range(descriptor, 0, status.st_size)
    finally:
        os.close(descriptor)


def write_new(name: Name, content: bytes, dir_fd: int | None = None, *, mode: int = 0o600, durable: bool) -> None:
    """Create a file with this content, or none. FileExistsError if the name is taken.

    `durable`: the content is on disk when this returns. The name is only once its directory is synced.
    """
    descriptor = create(name, dir_fd, mode=mode)
    try:
        give_to_owner(descriptor, _directory_of(name) if dir_fd is None else dir_fd)
        write_all(descriptor, [content])
        if durable:
            os.fsync(descriptor)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=dir_fd)
        raise
    finally:
        os.close(descriptor)


def replace(
    name: str | os.PathLike[str], content: bytes, dir_fd: int | None = None, *, mode: int = 0o600, durable: bool
) -> None:
    """Write a file so that readers see the old content or the new one, never a part.

    `durable`: content and name are on disk when this returns. Otherwise a power cut may leave any part of the content.
    """
    # Of its own for each writer, threads included.
    temporary = f"{os.fspath(name)}.{os.urandom(6).hex()}"
    # On disk before it is renamed: otherwise a crash could leave the name on an empty file.
    write_new(temporary, content, dir_fd, mode=mode, durable=durable)
    try:
        os.rename(temporary, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=dir_fd)
        raise
    if durable and dir_fd is not None:
        os.fsync(dir_fd)
    elif durable:
        sync_directory(_directory_of(name))


def sync_directory(path: Name) -> None:
    """Fsync a directory, so that names created, renamed or removed in it survive a crash."""
    descriptor = open_directory(path, follow=True)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_lock(name: Name, dir_fd: int | None = None) -> FileLock:
    """The lock on a file, which is created if it is missing; not acquired yet."""
    descriptor = open_for_update(name, dir_fd, create=True)
    try:
        give_to_owner(descriptor, _directory_of(name) if dir_fd is None else dir_fd)
    except BaseException:
        os.close(descriptor)
        raise
    return FileLock(descriptor)


@contextmanager
def hold_lock(name: Name, seconds: float) -> Iterator[None]:
    """Hold the lock on a file. OSError if it cannot be opened, AUDIT_LOCK_FAILED after waiting `seconds`."""
    lock = open_lock(name)
    try:
        lock.acquire(seconds)
        yield
    finally:
        lock.close()


def give_to_owner(descriptor: int, directory: Name | int) -> None:
    """Give a file that root created to the directory's owner, whose own processes could not open it otherwise."""
    if os.geteuid() == 0:
        owner, current = os.stat(directory), os.fstat(descriptor)  # noqa: PTH116  may be a descriptor
        # Only where it differs: each fchown is a write to the disk.
        if (current.st_uid, current.st_gid) != (owner.st_uid, owner.st_gid):
            os.fchown(descriptor, owner.st_uid, owner.st_gid)


def _directory_of(name: Name) -> Name:
    return os.path.dirname(os.fspath(name)) or "."  # noqa: PTH120  may be bytes


def _open_regular(name: Name, flags: int, mode: int, dir_fd: int | None) -> int:
    try:
        descriptor = os.open(name, flags, mode, dir_fd=dir_fd)
    except OSError as error:
        if error.errno in _OTHER_KINDS:
            raise NotRegularError(error.errno, error.strerror, error.filename) from error
        raise
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise NotRegularError(errno.EINVAL, "This is not a regular file", os.fspath(name))
