"""Renames that never overwrite: exchanged whole, or put where nothing is; and the portable way to the same."""

import ctypes
import errno
import os
from contextlib import suppress

NOREPLACE, EXCHANGE = 1, 2
BACKUP_SUFFIX = b".b"
_UNSUPPORTED_ERRNOS = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}
_LIBC = ctypes.CDLL(None, use_errno=True)
_RENAMEAT2 = getattr(_LIBC, "renameat2", None)
if _RENAMEAT2 is not None:
    _RENAMEAT2.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)


def exchange(dir_fd: int, temp: bytes, name: bytes) -> None:
    """Let two names of one directory trade places in one step; where that lacks, `name` is never without a file."""
    if not _call_renameat2(dir_fd, temp, dir_fd, name, EXCHANGE):
        exchange_portably(dir_fd, temp, name)


def rename_noreplace(from_fd: int, old: bytes, to_fd: int, new: bytes) -> None:
    """Rename to a name that is free; FileExistsError where it is not."""
    if not _call_renameat2(from_fd, old, to_fd, new, NOREPLACE):
        rename_portably(from_fd, old, to_fd, new)


def exchange_portably(dir_fd: int, temp: bytes, name: bytes) -> None:
    """Exchange by a second name for what is there; a rival between the two steps is not seen."""
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
    """Give the file its new name first, which fails where one is, then take the old one away."""
    os.link(old, new, src_dir_fd=from_fd, dst_dir_fd=to_fd, follow_symlinks=False)
    os.unlink(old, dir_fd=from_fd)


def _call_renameat2(from_fd: int, old: bytes, to_fd: int, new: bytes, how: int) -> bool:
    if _RENAMEAT2 is None:
        return False
    if _RENAMEAT2(from_fd, old, to_fd, new, how) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED_ERRNOS:
        return False
    raise OSError(number, os.strerror(number))
