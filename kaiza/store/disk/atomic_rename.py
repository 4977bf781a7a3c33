"""Atomic renames: exchange two names, or rename without overwriting.

Uses Linux's `renameat2`; where the kernel or the file system lacks it, hard links and plain renames.
"""

import ctypes
import errno
import os
from contextlib import suppress

NOREPLACE, EXCHANGE = 1, 2
BACKUP_SUFFIX = b".b"
# EPERM: a seccomp filter that predates the system call answers with it instead of ENOSYS. If the rename itself is
# forbidden, the portable way fails with the same error.
_UNSUPPORTED_ERRNOS = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}
_LIBC = ctypes.CDLL(None, use_errno=True)
_RENAMEAT2 = getattr(_LIBC, "renameat2", None)
if _RENAMEAT2 is not None:
    _RENAMEAT2.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)


def exchange(dir_fd: int, temp: bytes, name: bytes) -> None:
    """Exchange two names of one directory atomically; without `renameat2`, as `exchange_portably` does."""
    if not _call_renameat2(dir_fd, temp, dir_fd, name, EXCHANGE):
        exchange_portably(dir_fd, temp, name)


def rename_noreplace(from_fd: int, old: bytes, to_fd: int, new: bytes) -> None:
    """Rename to a free name. FileExistsError if the name is taken."""
    if not _call_renameat2(from_fd, old, to_fd, new, NOREPLACE):
        rename_portably(from_fd, old, to_fd, new)


def exchange_portably(dir_fd: int, temp: bytes, name: bytes) -> None:
    """Exchange two names by a hard link and two renames.

    `name` always names a complete file. A file that another process puts there between the link and the first rename
    is lost, which `renameat2` rules out.
    """
    # After a crash between the steps the old content is under `backup`; recovery completes the exchange from there.
    backup = temp + BACKUP_SUFFIX
    os.link(name, backup, src_dir_fd=dir_fd, dst_dir_fd=dir_fd, follow_symlinks=False)
    try:
        os.rename(temp, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(backup, dir_fd=dir_fd)
        raise
    os.rename(backup, temp, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)


def rename_portably(from_fd: int, old: bytes, to_fd: int, new: bytes) -> None:
    """Rename without overwriting, by a hard link. FileExistsError if the name is taken."""
    # `link` never overwrites. A crash before the unlink leaves both names, and the content under each.
    os.link(old, new, src_dir_fd=from_fd, dst_dir_fd=to_fd, follow_symlinks=False)
    os.unlink(old, dir_fd=from_fd)


def _call_renameat2(from_fd: int, old: bytes, to_fd: int, new: bytes, flags: int) -> bool:
    """Return False if `renameat2` is not supported here."""
    if _RENAMEAT2 is None:
        return False
    if _RENAMEAT2(from_fd, old, to_fd, new, flags) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED_ERRNOS:
        return False
    raise OSError(number, os.strerror(number))
