"""Path resolution below a root by Linux's `openat2`: the kernel itself refuses to leave the root.

There is no window between a check and its use in which a directory could be swapped for a link.
"""

import ctypes
import errno
import os
import sys
from dataclasses import dataclass

from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.files.resolved import HANDLE_FLAGS, OwnedDescriptor, ResolvedPath, swapped_error

SYSCALL_NUMBER = 437  # of openat2, on x86-64 as on arm64
NO_MAGICLINKS, NO_SYMLINKS, BENEATH = 0x02, 0x04, 0x08
# BENEATH refuses `..` above the root and absolute links; NO_MAGICLINKS those in /proc, which lead anywhere.
INSIDE = BENEATH | NO_MAGICLINKS
_DELETED = b" (deleted)"


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_SIZE = ctypes.sizeof(_OpenHow)
_SYSCALL = ctypes.CDLL(None, use_errno=True).syscall
_SYSCALL.restype = ctypes.c_long
_SYSCALL.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_OpenHow), ctypes.c_size_t)


def openat2(dir_fd: int, path: bytes, flags: int, resolve: int) -> int:
    """The system call; `resolve` limits what the path may lead through. It is repeated where a signal interrupts it."""
    how = _OpenHow(flags, 0, resolve)
    while True:
        fd: int = _SYSCALL(SYSCALL_NUMBER, dir_fd, path, ctypes.byref(how), _SIZE)
        if fd >= 0:
            return fd
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))


def is_supported(root_fd: int) -> bool:
    """Whether this kernel has the call, no filter (seccomp) forbids it, and /proc gives the paths of descriptors."""
    if sys.platform != "linux":
        return False
    try:
        with OwnedDescriptor(openat2(root_fd, b".", HANDLE_FLAGS, INSIDE)) as handle:
            _descriptor_path(handle.fd)
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class KernelResolver:
    """Resolves paths below a root with openat2."""

    root_fd: int
    name: str = "openat2"

    def resolve(self, path: RelPath, *, follow: bool = True) -> ResolvedPath:
        """Resolve a path; EXDEV where it leads outside, EAGAIN where a component was renamed during the resolution."""
        name = path.to_bytes()
        # First without links, the usual case: then the path is its own real path.
        try:
            fd = openat2(self.root_fd, name, HANDLE_FLAGS, INSIDE | NO_SYMLINKS)
        except OSError as error:
            if error.errno != errno.ELOOP or not follow:
                raise
        else:
            return ResolvedPath(fd, path, os.fstat(fd))
        fd = openat2(self.root_fd, name, HANDLE_FLAGS, INSIDE)
        try:
            return ResolvedPath(fd, self._real_path(fd), os.fstat(fd))
        except OSError:
            os.close(fd)
            raise

    def _real_path(self, fd: int) -> RelPath:
        """Path of a handle below the root; EAGAIN where it has none any more."""
        root = _descriptor_path(self.root_fd).rstrip(b"/") + b"/"
        path = _descriptor_path(fd)
        if path.rstrip(b"/") + b"/" == root:
            return RelPath(())
        if not path.startswith(root):
            raise swapped_error()
        real = RelPath.from_bytes(path[len(root) :])
        # The kernel appends " (deleted)" to the path of a deleted file. Such a name may also exist: then the rules
        # would judge one file and the caller read another.
        if path.endswith(_DELETED) and not self._is_at_path(real, fd):
            raise swapped_error()
        return real

    def _is_at_path(self, real: RelPath, fd: int) -> bool:
        try:
            with OwnedDescriptor(openat2(self.root_fd, real.to_bytes(), HANDLE_FLAGS, INSIDE | NO_SYMLINKS)) as other:
                return os.path.samestat(os.fstat(other.fd), os.fstat(fd))
        except OSError:
            return False


def _descriptor_path(fd: int) -> bytes:
    return os.readlink(b"/proc/self/fd/%d" % fd)  # noqa: PTH115 (names are bytes here)
