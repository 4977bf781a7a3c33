"""Paths resolved by the kernel, which never leaves the root however fast somebody swaps directories for links."""

import ctypes
import errno
import os
import sys
from dataclasses import dataclass

from kaiza.domain.paths import RelPath
from kaiza.store.place import HANDLE, Place, swapped

NUMBER = 437
NO_MAGICLINKS, NO_SYMLINKS, BENEATH = 0x02, 0x04, 0x08
INSIDE = BENEATH | NO_MAGICLINKS
_DELETED = b" (deleted)"


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_SIZE = ctypes.sizeof(_How)
_SYSCALL = ctypes.CDLL(None, use_errno=True).syscall
_SYSCALL.restype = ctypes.c_long
_SYSCALL.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_How), ctypes.c_size_t)


def openat2(dir_fd: int, path: bytes, flags: int, resolve: int) -> int:
    """Open a path below a directory under the kernel's own rules of resolution."""
    how = _How(flags, 0, resolve)
    while True:
        fd: int = _SYSCALL(NUMBER, dir_fd, path, ctypes.byref(how), _SIZE)
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
        fd = openat2(root_fd, b".", HANDLE, INSIDE)
    except OSError:
        return False
    try:
        _name_of(fd)
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

    def locate(self, path: RelPath, *, follow: bool = True) -> Place:
        """Find the place that a path leads to; EXDEV where a link leads out, EAGAIN where it should be tried again."""
        asked = path.as_bytes()
        try:
            fd = openat2(self.root_fd, asked, HANDLE, INSIDE | NO_SYMLINKS)
        except OSError as error:
            if error.errno != errno.ELOOP or not follow:
                raise
        else:
            return Place(fd, path, os.fstat(fd))
        fd = openat2(self.root_fd, asked, HANDLE, INSIDE)
        try:
            return Place(fd, self._real(fd), os.fstat(fd))
        except OSError:
            os.close(fd)
            raise

    def _real(self, fd: int) -> RelPath:
        """Ask the kernel where a handle is; a name that no longer leads to it is no answer."""
        root = _name_of(self.root_fd).rstrip(b"/") + b"/"
        found = _name_of(fd)
        if found.rstrip(b"/") + b"/" == root:
            return RelPath(())
        if not found.startswith(root):
            raise swapped()
        real = RelPath.of_bytes(found[len(root) :])
        if found.endswith(_DELETED) and not self._leads_to(real, fd):
            raise swapped()
        return real

    def _leads_to(self, real: RelPath, fd: int) -> bool:
        try:
            again = openat2(self.root_fd, real.as_bytes(), HANDLE, INSIDE | NO_SYMLINKS)
        except OSError:
            return False
        try:
            return os.path.samestat(os.fstat(again), os.fstat(fd))
        finally:
            os.close(again)


def _name_of(fd: int) -> bytes:
    return os.readlink(b"/proc/self/fd/%d" % fd)  # noqa: PTH115 (names are bytes here)
