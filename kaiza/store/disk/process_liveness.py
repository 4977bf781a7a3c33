"""Liveness of processes, and the sessions that each of them serves.

Each process locks a file of its own in `.kaiza/live/`, and the kernel releases the lock when the process ends. A
process id would not do: after a crash the system may have given it to another process. A server also lists the sessions
that it has served in such a file. The list is only shown to people, and nothing is decided by it: the workspace may be
a clone, and any program of its user can write such a file.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Container, Iterator
from contextlib import suppress

from kaiza.store.disk import small_files
from kaiza.store.disk.byte_io import write_all
from kaiza.store.disk.kaiza_dir import NAME, KaizaDir


class LivenessLock:
    """Liveness file of one process. Intents and journals name its `id`."""

    def __init__(self, kaiza_dir: KaizaDir, prefix: str = "") -> None:
        self._kaiza_dir = kaiza_dir
        while True:
            self.id = f"{prefix}{os.getpid()}-{os.urandom(8).hex()}"
            self.descriptor = small_files.create(self.id, kaiza_dir.open_directory("live"))
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
            # Another process's `remove_dead` may have deleted the file before it was locked.
            if os.fstat(self.descriptor).st_nlink:
                break
            os.close(self.descriptor)

    def close(self) -> None:
        """Delete the file and release its lock."""
        with suppress(FileNotFoundError):
            os.unlink(self.id, dir_fd=self._kaiza_dir.open_directory("live"))
        os.close(self.descriptor)


def is_dead(kaiza_dir: KaizaDir, live_id: str) -> bool:
    """Whether the process with this id has ended; also True for an id that never existed. Writes nothing."""
    # The id comes from a journal or a log that may be hostile, and is used as a file name.
    if not live_id.replace("-", "").isalnum():
        return True
    try:
        directory = kaiza_dir.find_directory("live")
        if directory is None:
            return True
        fd = small_files.open_for_reading(live_id, directory)
    except PermissionError:
        return False  # it belongs to another account, which may be alive
    except OSError:
        return True
    try:
        # Shared: of two processes that look at the same time, neither takes the other for the owner.
        return _try_lock(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def remove_dead(kaiza_dir: KaizaDir) -> Iterator[None]:
    """Delete the files of processes that have ended, with a yield after each file that was looked at."""
    listed = kaiza_dir.find_directory("live")
    for name in os.listdir(listed) if listed is not None else ():  # noqa: PTH208 (of a descriptor)
        with suppress(OSError):
            directory_fd = kaiza_dir.open_directory("live")
            fd = small_files.open_for_update(name, directory_fd)
            try:
                if _try_lock(fd, fcntl.LOCK_EX):
                    os.unlink(name, dir_fd=directory_fd)
            finally:
                os.close(fd)
        yield


def is_locked(path: str) -> bool:
    """Whether a living process holds the lock on its file at this path, such as a journal that it is writing."""
    try:
        descriptor = small_files.open_for_reading(path)
    except OSError:
        return False
    try:
        # Shared, which is enough to meet a holder and does not turn away another process that looks.
        return not _try_lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _try_lock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


PREFIX = "serves-"
_MAX_FILE_BYTES = 1 << 20


class ServedSessions:
    """The sessions that this process has served. Thread-safe. Nothing is noted in a workspace that is not ours."""

    def __init__(self, kaiza_dir: KaizaDir, is_ours: Callable[[], bool]) -> None:
        self._kaiza_dir = kaiza_dir
        self._is_ours = is_ours
        self._mutex = threading.Lock()  # protects `_lock` and `_noted`
        self._lock: LivenessLock | None = None
        self._noted: set[str] = set()

    def note(self, session_id: str) -> str | None:
        """List a session; the id of this process's file, or None if it cannot be written."""
        if not self._is_ours():
            return None
        if session_id not in self._noted:
            with self._mutex:
                self._noted.add(session_id)  # also if it fails: a full disk is not asked again with each call
                try:
                    self._lock = self._lock or LivenessLock(self._kaiza_dir, PREFIX)
                    write_all(self._lock.descriptor, [session_id.encode() + b"\n"])
                except OSError:
                    return None
        return self._lock.id if self._lock else None

    def close(self) -> None:
        """Delete the file."""
        with self._mutex:
            if self._lock is not None:
                self._lock.close()
            self._lock = None


def find_served(root: str) -> frozenset[str] | None:
    """Ids of the sessions that living processes serve; None if that cannot be known. Writes nothing."""
    try:
        home = small_files.open_directory(os.path.join(os.fsencode(root), NAME))  # noqa: PTH118  a root may hold any bytes
        try:
            directory = small_files.open_directory("live", home)
        finally:
            os.close(home)
        try:
            names = [name for name in os.listdir(directory) if name.startswith(PREFIX)]  # noqa: PTH208  of a descriptor
            return frozenset(session_id for name in names for session_id in _read_if_alive(name, directory))
        finally:
            os.close(directory)
    except FileNotFoundError:
        return frozenset()
    except OSError:  # the file of another account
        return None


def is_idle(session_id: str, live: str | None, served: Container[str] | None) -> bool:
    """Whether it is known that no running server has a session; `live` is what its first record says.

    Unknown for a session whose server could not list it.
    """
    return live is not None and served is not None and session_id not in served


def _read_if_alive(name: str, directory: int) -> list[str]:
    try:
        descriptor = small_files.open_for_reading(name, directory)
    except (FileNotFoundError, small_files.NotRegularError):  # its process has just ended, or it is no such file
        return []
    try:
        if _try_lock(descriptor, fcntl.LOCK_SH):
            return []
        return os.pread(descriptor, _MAX_FILE_BYTES, 0).decode("ascii", "replace").split("\n")
    finally:
        os.close(descriptor)
