"""Which sessions have a living server: each process lists those that it serves in a liveness file of its own.

For people only. The workspace may be a clone, and any program of its user can write such a file; nothing is decided by
it.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Container, Iterator

from kaiza.store.disk import small_files
from kaiza.store.disk.byte_io import write_all
from kaiza.store.disk.kaiza_dir import NAME, KaizaDir
from kaiza.store.disk.process_liveness import LivenessLock, try_lock

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
        return frozenset(session_id for name in _read_files(root) for session_id in name)
    except FileNotFoundError:
        return frozenset()
    except OSError:  # such as the file of another account
        return None


def is_idle(session_id: str, live: str | None, served: Container[str] | None) -> bool:
    """Whether it is known that no running server has a session; `live` is what its first record says.

    Unknown for a session whose server could not list it.
    """
    return live is not None and served is not None and session_id not in served


def _read_files(root: str) -> Iterator[list[str]]:
    home = small_files.open_directory(os.path.join(os.fsencode(root), NAME))  # noqa: PTH118  a root may hold any bytes
    try:
        directory = small_files.open_directory("live", home)
    finally:
        os.close(home)
    try:
        for name in os.listdir(directory):  # noqa: PTH208  of a descriptor
            if name.startswith(PREFIX):
                yield _read_if_alive(name, directory)
    finally:
        os.close(directory)


def _read_if_alive(name: str, directory: int) -> list[str]:
    try:
        descriptor = small_files.open_for_reading(name, directory)
    except (FileNotFoundError, small_files.NotRegularError):  # its process has just ended, or it is no such file
        return []
    try:
        if try_lock(descriptor, fcntl.LOCK_SH):
            return []
        return os.pread(descriptor, _MAX_FILE_BYTES, 0).decode("ascii", "replace").split("\n")
    finally:
        os.close(descriptor)
