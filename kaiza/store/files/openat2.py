"""Paths resolved by the kernel, which never leaves the root however fast somebody swaps directories for links."""

import ctypes
import errno
import os
import sys
from dataclasses import dataclass

from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.files.resolved import HANDLE_FLAGS, ResolvedPath, swapped_error

SYSCALL_NUMBER = 437
NO_MAGICLINKS, NO_SYMLINKS, BENEATH = 0x02, 0x04, 0x08
INSIDE = BENEATH | NO_MAGICLINKS
_DELETED = b" (deleted)"


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_SIZE = ctypes.sizeof(_OpenHow)
_SYSCALL = ctypes.CDLL(None, use_errno=True).syscall
_SYSCALL.restype = ctypes.c_long
_SYSCALL.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_OpenHow), ctypes.c_size_t)


def openat2(dir_fd: int, path: bytes, flags: int, resolve: int) -> int:
    """Open a path below a directory under the kernel's own rules of resolution."""
    how = _OpenHow(flags, 0, resolve)
    while True:
        fd: int = _SYSCALL(SYSCALL_NUMBER, dir_fd, path, ctypes.byref(how), _SIZE)
        if fd >= 0:
            return fd
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))


def is_supported(root_fd: int) -> bool:
    """Whether this kernel has the call, nothing filters it away, and handles can be read through /proc."""
    if sys.platform != "linux":
        return False
    try:
        fd = openat2(root_fd, b".", HANDLE_FLAGS, INSIDE)
    except OSError:
        return False
    try:
        _descriptor_path(fd)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


@dataclass(frozen=True, slots=True)
class KernelResolver:
    """Finds places below the root by openat2."""

    root_fd: int
    name: str = "openat2"

    def resolve(self, path: RelPath, *, follow: bool = True) -> ResolvedPath:
        """Find the place that a path leads to; EXDEV where a link leads out, EAGAIN where it should be tried again."""
        asked = path.to_bytes()
        try:
            fd = openat2(self.root_fd, asked, HANDLE_FLAGS, INSIDE | NO_SYMLINKS)
        except OSError as error:
            if error.errno != errno.ELOOP or not follow:
                raise
        else:
            return ResolvedPath(fd, path, os.fstat(fd))
        fd = openat2(self.root_fd, asked, HANDLE_FLAGS, INSIDE)
        try:
            return ResolvedPath(fd, self._real_path(fd), os.fstat(fd))
        except OSError:
            os.close(fd)
            raise

    def _real_path(self, fd: int) -> RelPath:
        """Ask the kernel where a handle is; a name that no longer leads to it is no answer."""
        root = _descriptor_path(self.root_fd).rstrip(b"/") + b"/"
        found = _descriptor_path(fd)
        if found.rstrip(b"/") + b"/" == root:
            return RelPath(())
        if not found.startswith(root):
            raise swapped_error()
        real = RelPath.from_bytes(found[len(root) :])
        if found.endswith(_DELETED) and not self._is_at_path(real, fd):
            raise swapped_error()
        return real

    def _is_at_path(self, real: RelPath, fd: int) -> bool:
        try:
            again = openat2(self.root_fd, real.to_bytes(), HANDLE_FLAGS, INSIDE | NO_SYMLINKS)
        except OSError:
            return False
        try:
            return os.path.samestat(os.fstat(again), os.fstat(fd))
        finally:
            os.close(again)


def _descriptor_path(fd: int) -> bytes:
    return os.readlink(b"/proc/self/fd/%d" % fd)  # noqa: PTH115 (names are bytes here)
