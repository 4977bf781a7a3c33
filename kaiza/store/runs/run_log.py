"""Run log of one process: appends a line for each event. A line that cannot be written is lost."""

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count
from typing import Final
from uuid import uuid4

from kaiza.domain.audit.deterministic import counted_timestamp, derive_id
from kaiza.domain.run_event import RunEvent, RunIds, RunStamp, encode_event
from kaiza.store.config.roots import is_initialized
from kaiza.store.disk import state_dir
from kaiza.store.disk.byte_io import write_all
from kaiza.store.runs import run_files
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
        if self._descriptor is not None:
            self._append_line(self._descriptor, line)
            self._event_count += 1

    def _append_line(self, descriptor: int, line: bytes) -> None:
        try:
            write_all(descriptor, [line])
        except OSError:
            os.ftruncate(descriptor, self._size)  # half a line would corrupt the next one
            raise
        self._size += len(line)

    def _has_room(self, size: int) -> bool:
        """Whether the file has room for a line, and still has its name."""
        return (
            self._descriptor is not None
            and self._size + size <= MAX_FILE_BYTES
            and os.fstat(self._descriptor).st_nlink > 0
        )

    def _begin_run(self) -> bool:
        """Begin a file; False if no root is ready and bound. OSError if it cannot be created."""
        root = next(filter(_is_ready, self._roots), None)
        if root is None:
            return False
        directory = run_files.open_directory(root)
        try:
            name = self._create_file(directory)
            with suppress(OSError):
                run_files.link_latest(directory, name)
            with suppress(OSError):
                run_files.remove_old_runs(directory, name)
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
                self._descriptor = run_files.create_file(directory, name)
                break
        return name

    def _stamp(self, event: RunEvent) -> RunStamp:
        timestamp = counted_timestamp(self._event_count) if self._is_deterministic else _format_time(event.at)
        ids = event.ids or RunIds(str(uuid4()), str(uuid4()), str(uuid4()))
        return RunStamp(self._run_id, timestamp, ids, self._is_deterministic)


def _is_ready(root: str) -> bool:
    return is_initialized(root) and read_binding(root, state_dir.path_of(root)).standing is Standing.BOUND


def _format_time(seconds: float) -> str:
    milliseconds = round(seconds * 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(milliseconds // 1000))}.{milliseconds % 1000:03d}Z"
