"""Keeps the manifest of one workspace: a first pass when a session begins, the rest and the hashes in the background.

Several processes may do so at once: each scan is written under a lock, and hashes are written as they are found.
SQLite is imported by the background thread, so that the first answer of a server does not wait for it.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.disk import lock_timeouts, small_files
from kaiza.store.disk.file_lock import FileLock
from kaiza.store.files.confined_root import ConfinedRoot

if TYPE_CHECKING:
    from kaiza.store.manifest.tree import Chunk

FIRST_PASS_SECONDS = 0.1
MAX_FIRST_ENTRIES = 50_000
LOCK_NAME = "manifest.lock"
# The answer that began the session goes out before the background work begins.
_START_DELAY = 0.05
_STOP_SECONDS = 2.0


@dataclass(slots=True)
class PendingBegin:
    """A session whose start is still to be written: what the first pass saw, and the rest of the walk."""

    session_id: str
    begun_ns: int
    seq: int
    chunks: "list[Chunk]"
    rest: "Iterator[Chunk | None]"
    written: threading.Event = field(default_factory=threading.Event)
    hashed: threading.Event = field(default_factory=threading.Event)


class ManifestKeeper:
    """The manifest of one workspace, for one process. `find_identity` is None where nothing may be kept."""

    def __init__(
        self,
        root: ConfinedRoot,
        state_path: Path,
        find_identity: Callable[[], str | None],
        is_unreadable: Callable[[RelPath], bool],
    ) -> None:
        self.root = root
        self.state_path = state_path
        self.find_identity = find_identity
        self.is_unreadable = is_unreadable
        self.first_pass_seconds = FIRST_PASS_SECONDS
        self._mutex = threading.Lock()  # protects `_pending`, `_begun` and `_thread`
        self._pending: deque[PendingBegin] = deque()
        self._begun: dict[str, PendingBegin] = {}
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._stopping = threading.Event()

    def begin(self, session_id: str, seq: int) -> None:
        """Take the first pass of a session that begins after the record `seq`. The rest follows in the background."""
        if self._stopping.is_set() or self.find_identity() is None:
            return
        from kaiza.store.manifest.tree import END, walk_tree  # noqa: PLC0415  most processes begin no session

        begun_ns, until = time.time_ns(), time.monotonic() + self.first_pass_seconds
        rest, chunks, count = walk_tree(self.root), list["Chunk"](), 0
        while time.monotonic() < until and count < MAX_FIRST_ENTRIES:
            chunk = next(rest, END)
            if chunk is END:
                break
            if chunk is not None:
                chunks.append(chunk)
                count += len(chunk.entries)
        pending = PendingBegin(session_id, begun_ns, seq, chunks, rest)
        with self._mutex:
            self._pending.append(pending)
            self._begun[session_id] = pending
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="kaiza-manifest", daemon=True)
                self._thread.start()
        self._wake.set()

    def wait(self, session_id: str, seconds: float) -> None:
        """Wait until the session's start is written and hashed, if this process is doing so."""
        pending, until = self.find_pending(session_id), time.monotonic() + seconds
        if pending is not None and pending.written.wait(seconds):
            pending.hashed.wait(max(0.0, until - time.monotonic()))

    def find_pending(self, session_id: str) -> PendingBegin | None:
        """The begin that this process writes, or wrote; the background work starts at once."""
        self._hurry.set()
        return self._begun.get(session_id)

    def forget(self, session_id: str) -> None:
        """Forget a session that has ended."""
        self._begun.pop(session_id, None)

    def is_stopping(self) -> bool:
        """Whether the process is about to end."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """End the background work soon, and wait for it."""
        self._stopping.set()
        self._hurry.set()
        self._wake.set()
        if self._thread is not None:
            # A file system that does not answer must not keep the server from ending.
            self._thread.join(_STOP_SECONDS)
        for pending in self._pending:
            _close(pending)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait()
            self._hurry.wait(_START_DELAY)
            self._hurry.clear()
            self._wake.clear()
            if self._stopping.is_set():
                return
            with self._mutex:
                batch, self._pending = list(self._pending), deque()
            if batch:
                self._write(batch)

    def _write(self, batch: list[PendingBegin]) -> None:
        from kaiza.store.manifest.scan_writer import write_begin  # noqa: PLC0415  imports sqlite3

        try:
            write_begin(self, batch)
        except (OSError, errors.SystemError):
            return  # these sessions have no manifest, which their end and the review report
        finally:
            for pending in batch:
                _close(pending)

    def acquire_lock(self) -> FileLock | None:
        """The lock on the manifest; None once the process is about to end."""
        lock = small_files.open_lock(self.state_path / LOCK_NAME)
        while not self._stopping.is_set():
            if lock.acquire_within(lock_timeouts.MANIFEST):
                return lock
        lock.close()
        return None


def _close(pending: PendingBegin) -> None:
    close = getattr(pending.rest, "close", None)
    if close is not None:
        close()
    pending.chunks.clear()
    pending.written.set()
    pending.hashed.set()
