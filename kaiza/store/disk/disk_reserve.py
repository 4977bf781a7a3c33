"""Space on the disk that is kept for a person's undo: a file in `.kaiza/` whose blocks are taken.

An agent can change nothing unless the reserve is there, so whatever fills the disk leaves at least that much. An undo
by a person deletes the file if the disk is full, and puts it back afterwards if there is room.
"""

import errno
import os
import stat
from contextlib import suppress

from kaiza.domain import errors
from kaiza.store.disk import small_files
from kaiza.store.disk.byte_io import write_all
from kaiza.store.disk.kaiza_dir import KaizaDir

NAME = "reserve"
MAX_BYTES = 8 << 20
"""More than an undo of one file of ordinary size needs; an undo of several is split where room is short."""
MIN_BYTES = 32 << 10
_PART_OF_DISK = 32
FULL_DISK_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})


def keep(kaiza_dir: KaizaDir) -> None:
    """Create the reserve unless it is there. FILE_WRITE_FAILED if the disk has no room for it."""
    try:
        home = kaiza_dir.open_home()
        wanted, found = _wanted_bytes(home), _reserved_bytes(home)
        if found < wanted:
            _allocate(home, wanted)
    except OSError as error:
        if error.errno in FULL_DISK_ERRNOS:
            raise full_disk_error() from error
        raise errors.SystemError.tool_failure(
            "FILE_WRITE_FAILED",
            human_message="The reserve in .kaiza could not be created. Ask a person to run kaiza doctor.",
            cause={"path": f".kaiza/{NAME}", "errno": errno.errorcode.get(error.errno or 0, "UNKNOWN")},
        ) from error


def keep_if_possible(kaiza_dir: KaizaDir) -> None:
    """Create the reserve if there is room for it. Until it is there, agents can change nothing."""
    try:
        keep(kaiza_dir)
    except errors.SystemError:
        return  # the next change of an agent tries again, and is refused with the reason


def release_if_full(kaiza_dir: KaizaDir) -> bool:
    """Give the reserve back to a disk that has less room than the reserve; whether it was released."""
    with suppress(OSError):
        home = kaiza_dir.open_home()
        if free_bytes(home) < _wanted_bytes(home):
            os.unlink(NAME, dir_fd=home)
            return True
    return False


def free_bytes(fd: int) -> int:
    """Free space of the file system that an open file or directory is on."""
    status = os.statvfs(fd)
    return status.f_bavail * status.f_frsize


def full_disk_error() -> errors.SystemError:
    """FILE_WRITE_FAILED for a change that would leave too little for a person's undo."""
    return errors.SystemError.tool_failure(
        "FILE_WRITE_FAILED",
        human_message="The disk is full: what is left is kept for a person's undo. Ask a person to free some space.",
        cause={"path": f".kaiza/{NAME}", "errno": "ENOSPC"},
    )


def _wanted_bytes(home: int) -> int:
    status = os.statvfs(home)
    return min(MAX_BYTES, max(MIN_BYTES, status.f_blocks * status.f_frsize // _PART_OF_DISK))


def _reserved_bytes(home: int) -> int:
    try:
        status = os.stat(NAME, dir_fd=home, follow_symlinks=False)
    except FileNotFoundError:
        return 0
    # Any other kind of file may have come with a clone, and is refused when it is opened.
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _allocate(home: int, size: int) -> None:
    fd = small_files.open_for_update(NAME, home, create=True)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, size)
        else:
            write_all(fd, (b"\0" * MIN_BYTES for _ in range(-(-size // MIN_BYTES))))
    except BaseException:
        with suppress(OSError):
            os.unlink(NAME, dir_fd=home)
        raise
    finally:
        os.close(fd)
