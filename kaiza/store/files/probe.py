"""Tests whether the machine and a directory's file system offer what Kaiza needs. Leaves no files behind.

A full disk is no answer: the functions raise its OSError.
"""

import ctypes
import fcntl
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from kaiza.store.disk.disk_reserve import FULL_DISK_ERRNOS
from kaiza.store.files.openat2 import is_supported
from kaiza.store.files.resolved import OwnedDescriptor

_EXCHANGE = 2
_LIBC = ctypes.CDLL(None, use_errno=True)


def find_resolver(root: Path) -> str:
    """How paths below this root are resolved: `openat2` or `walk`."""
    with OwnedDescriptor(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as directory:
        return "openat2" if is_supported(directory.fd) else "walk"


def try_file_system(directory: Path) -> Mapping[str, str | None]:
    """Results by trial: None for success, or the system's message. OSError where no file can be created at all."""
    with tempfile.TemporaryDirectory(prefix=".kaiza-doctor-", dir=directory) as scratch:
        return {name: _run_trial(trial, Path(scratch)) for name, trial in _TRIALS.items()}


def try_writing(directory: Path) -> str | None:
    """None where a file can be created and removed in the directory, else the system's message."""
    return _run_trial(lambda place: tempfile.TemporaryFile(dir=place).close(), directory)


def _run_trial(trial: Callable[[Path], None], place: Path) -> str | None:
    try:
        trial(place)
    except OSError as error:
        if error.errno in FULL_DISK_ERRNOS:
            raise
        return error.strerror or "it failed"
    return None


def _try_sync(place: Path) -> None:
    with (place / "synced").open("wb") as file:
        file.write(b"kaiza")
        file.flush()
        os.fsync(file.fileno())
    with OwnedDescriptor(os.open(place, os.O_RDONLY | os.O_DIRECTORY)) as directory:
        os.fsync(directory.fd)


def _try_lock(place: Path) -> None:
    # A file system without real locks grants both descriptors of one file the exclusive lock.
    with (place / "locked").open("wb") as first, (place / "locked").open("rb") as second:
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(BlockingIOError):
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
            raise OSError(0, "a held lock was granted a second time")


def _try_link(place: Path) -> None:
    (place / "one").write_bytes(b"1")
    os.link(place / "one", place / "other")


def _try_exchange(place: Path) -> None:
    names = [bytes(place / name) for name in ("left", "right")]
    for name in names:
        Path(os.fsdecode(name)).write_bytes(name)
    call = getattr(_LIBC, "renameat2", None)
    if call is None:
        raise OSError(0, "the system has no renameat2")
    if call(-100, names[0], -100, names[1], _EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


_TRIALS: Mapping[str, Callable[[Path], None]] = {
    "sync": _try_sync,
    "lock": _try_lock,
    "link": _try_link,
    "exchange": _try_exchange,
}
