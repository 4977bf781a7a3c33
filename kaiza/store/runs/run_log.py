"""Run log of one process, in `.kaiza/runs/mcp_server/envelope_validation/`: a line for each event of a server.

A line that cannot be written is lost. Each run has a file, and a link names the newest. No component below the root is
opened through a link; only regular files with the name of a run are ever removed.
"""

import fcntl
import os
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count
from typing import Final
from uuid import uuid4

from kaiza.domain.audit.deterministic import counted_timestamp, derive_id
from kaiza.domain.run_event import RunEvent, RunIds, RunStamp, encode_event
from kaiza.store.config.roots import is_initialized
from kaiza.store.disk import small_files, state_dir
from kaiza.store.disk.byte_io import write_all
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.trust.binding import Standing, read_binding

MAX_FILE_BYTES: Final = 16 << 20


class RunLog:
    """Run log in the first of the roots that is ready and belongs to this machine. Not thread-safe.

    `is_deterministic`: time counts events from 1970 on, durations are 0, and ids follow from the requests.
    """

    def __init__(self, roots: Sequence[str], *, is_deterministic: bool = False) -> None:
        self._roots = roots
        self._is_deterministic = is_deterministic
        self._run_id = ""
        self._descriptor: int | None = None
        self._size = 0
        self._event_count = 0

    def append(self, events: Iterable[RunEvent]) -> bool:
        """Append a line for each event; False if no run could begin, so that the events may be appended later."""
        try:
            if self._descriptor is None and not self._begin_run():
                return False
        except OSError:
            return False
        for event in events:
            with suppress(OSError):
                self._append_event(event)
        return True

    def close(self) -> None:
        """Close the file, which releases its lock. Idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _append_event(self, event: RunEvent) -> None:
        line = encode_event(event, self._stamp(event))
        if not self._has_room(len(line)):
            self.close()
            if not self._begin_run():
                return
            line = encode_event(event, self._stamp(event))
        if self._descriptor is None:
            return
        try:
            write_all(self._descriptor, [line])
        except OSError:
            os.ftruncate(self._descriptor, self._size)  # half a line would corrupt the next one
            raise
        self._size += len(line)
        self._event_count += 1

    def _has_room(self, size: int) -> bool:
        """Whether the file has room for a line, and still has its name."""
        return (
            self._descriptor is not None
            and self._size + size <= MAX_FILE_BYTES
            and os.fstat(self._descriptor).st_nlink > 0
        )

    def _begin_run(self) -> bool:
        """Begin a file; False if no root is ready and bound. OSError if it cannot be created."""
        for root in filter(is_initialized, self._roots):
            if read_binding(root, state_dir.path_of(root)).standing is Standing.BOUND:
                break
        else:
            return False
        directory = _open_directory(root)
        try:
            name = self._create_file(directory)
            with suppress(OSError):
                _link_latest(directory, name)
            with suppress(OSError):
                _remove_old_runs(directory, name)
        finally:
            os.close(directory)
        self._size = 0
        return True

    def _create_file(self, directory: int) -> str:
        """Create the file of a new run, and return its name."""
        at = 0.0 if self._is_deterministic else time.time()
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))
        for number in count():
            self._run_id = derive_id("run", str(number)) if self._is_deterministic else str(uuid4())
            name = f"{stamp}.{self._run_id}.jsonl"
            with suppress(FileExistsError):
                self._descriptor = _create_file(directory, name)
                break
        return name

    def _stamp(self, event: RunEvent) -> RunStamp:
        milliseconds = round(event.at * 1000)
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000))
        timestamp = f"{whole}.{milliseconds % 1000:03d}Z"
        if self._is_deterministic:
            timestamp = counted_timestamp(self._event_count)
        ids = event.ids or RunIds(str(uuid4()), str(uuid4()), str(uuid4()))
        return RunStamp(self._run_id, timestamp, ids, self._is_deterministic)


KEPT_RUNS: Final = 5
LATEST: Final = ".latest"

_COMPONENTS = ("runs", "mcp_server", "envelope_validation")
_RUN_NAME = re.compile(r"[0-9]{8}T[0-9]{6}Z\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl", re.ASCII)


def _open_directory(root: str) -> int:
    """Descriptor of the directory, which is created if missing. OSError if a component is not a directory."""
    root_fd = small_files.open_directory(root)
    kaiza_dir = KaizaDir(root_fd)
    try:
        parent = os.dup(kaiza_dir.open_home())
    finally:
        kaiza_dir.close()
        os.close(root_fd)
    for name in _COMPONENTS:
        try:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=parent)
            child = small_files.open_directory(name, parent)
        finally:
            os.close(parent)
        parent = child
    return parent


def _create_file(directory_fd: int, name: str) -> int:
    """Descriptor of a run's new file, locked while it is open. FileExistsError if the name is taken."""
    while True:
        descriptor = small_files.create(name, directory_fd, append=True)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Another process may have removed the file before it was locked.
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)


def _link_latest(directory_fd: int, name: str) -> None:
    """Point `.latest` to a run's file. Readers see the old link or the new one."""
    temp = f"{LATEST}.{name}"
    os.symlink(name, temp, dir_fd=directory_fd)
    try:
        os.replace(temp, LATEST, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)
    except OSError:
        os.unlink(temp, dir_fd=directory_fd)
        raise


def _remove_old_runs(directory_fd: int, newest: str) -> None:
    """Remove all runs but the KEPT_RUNS written last, `newest` included. Those of running processes stay."""
    with os.scandir(directory_fd) as entries:
        runs = [
            (entry.stat(follow_symlinks=False).st_mtime_ns, entry.name)
            for entry in entries
            if _RUN_NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
        ]
    # Two files may have the same time, so the caller names the newest.
    earlier = sorted((run for run in runs if run[1] != newest), reverse=True)
    for _, name in earlier[KEPT_RUNS - 1 :]:
        with suppress(OSError):
            _remove_ended(directory_fd, name)


def _remove_ended(directory_fd: int, name: str) -> None:
    descriptor = small_files.open_for_reading(name, directory_fd)
    try:
        # Fails while the run's process holds the lock.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=directory_fd)
    finally:
        os.close(descriptor)
