"""What the file system of an open file is known not to do."""

import ctypes
import os
import sys

_MEMORY = frozenset({0x01021994, 0x858458F6, 0x958458F6})
"""tmpfs, ramfs, hugetlbfs."""
_LIBC = ctypes.CDLL(None, use_errno=True)
_BUFFER_BYTES = 256


def keeps_times(descriptor: int) -> bool:
    """Whether each change of a file changes its times: not in memory, where stores through a mapping leave them."""
    if sys.platform != "linux":
        return True
    buffer = ctypes.create_string_buffer(_BUFFER_BYTES)
    if _LIBC.fstatfs(descriptor, buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    # The type is the first member of `struct statfs`; the kernel's constants have 32 bits.
    kind = int.from_bytes(buffer.raw[: ctypes.sizeof(ctypes.c_long)], sys.byteorder) & 0xFFFFFFFF
    return kind not in _MEMORY
