"""Projection of a long log in a thread of its own, in bounded steps, saved as it goes.

The log's lock is never held. A snapshot is saved only of a prefix whose chain was verified, while no damage is known
and the file is still the log; so whenever the process is killed, the next one continues from a correct snapshot.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path

from kaiza.domain import errors
from kaiza.domain.audit.hash_chain import Chain
from kaiza.domain.audit.projection import AuditState
from kaiza.domain.audit.record import LogHead
from kaiza.store.audit import log_file, snapshot
from kaiza.store.audit.continuity import ContinuityCheck
from kaiza.store.audit.damage_mark import DamageMark, is_damage
from kaiza.store.audit.log import AuditLog
from kaiza.store.audit.log_file import LogFile
from kaiza.store.audit.reader import BLOCK_BYTES, read_blocks
from kaiza.store.audit.tail import RecordCallback, read_valid_records
from kaiza.store.audit.verification.verify import compute_verdict
from kaiza.store.disk import small_files
from kaiza.store.disk.state_key import StateKey

RECORDS_PER_SAVE = 200_000
_LINES_PER_STEP = 200
# Long enough that the interpreter runs another thread: a call that is waiting goes on between two steps of 1 ms.
_PAUSE_SECONDS = 0.00005
_LOCK_NAME = "index.lock"
# How long to wait for another process that builds, since it saved last.
_TURN_SECONDS = 5.0
_POLL_SECONDS = 0.05
_RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class ProjectionSource:
    """A workspace's log, and where its snapshot is kept."""

    root: str
    state_path: Path
    key: StateKey
    restricted_seq: int
    """Records up to this number may only restrict; -1 for all of them."""
    apply_to: Callable[[AuditState, int], RecordCallback]
    """Returns the function that applies records to a state."""

    def load(self) -> tuple[AuditState, LogHead | None]:
        """The snapshot, if it is of this log."""
        path = log_file.path_of(self.root)
        return snapshot.load(self.state_path, path, self.key, self.restricted_seq)

    def save(self, body: bytes) -> None:
        """Save a snapshot, if there is a state directory. OSError if it cannot be written."""
        if self.state_path.is_dir():
            snapshot.save(self.state_path, body, self.key)


class _ReadingStoppedError(Exception):
    """The process is about to end, or another reading has begun."""


class ProjectionBuild:
    """One reading of a log, up to where this process follows it.

    `on_done` is called under the log's mutex with the state, before any later record is applied to it, and
    `save` after that. With `ignores_snapshot` all of the log is read: what was read of it before may have changed.
    """

    def __init__(
        self,
        source: ProjectionSource,
        log: AuditLog,
        on_done: Callable[[AuditState], None],
        save: Callable[[], None],
        *,
        ignores_snapshot: bool,
    ) -> None:
        self._source = source
        self._log = log
        self._on_done = on_done
        self._save_state = save
        self.ignores_snapshot = ignores_snapshot
        self._damage_mark = DamageMark(source.state_path)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kaiza-index", daemon=True)
        self.ended = threading.Event()
        self.failure: errors.SystemError | None = None
        self.found_damage = False
        """Whether the log was read to its end although it is damaged; the state is partial then."""
        self.progress = (0, 0)
        """Bytes read and bytes in all."""

    def start(self) -> None:
        """Start to read."""
        self._thread.start()

    def stop(self, seconds: float = 0.0) -> None:
        """End the reading soon, and wait for that for some seconds; what was read is saved."""
        self._stop.set()
        if seconds and self._thread is not threading.current_thread():
            self._thread.join(seconds)

    def _run(self) -> None:
        try:
            with suppress(_ReadingStoppedError), self._turn():
                pauses = chain(_RETRY_SECONDS, repeat(_RETRY_SECONDS[-1]))
                while not self._try_build():
                    self._pause(next(pauses))
                self._save_state()
        except errors.SystemError as failure:
            self.failure = failure
        except OSError as refused:
            self.failure = log_file.log_error(refused, "The audit log could not be read. Check the disk.")
        finally:
            self.ended.set()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait while another process reads the log and saves what it has read; its snapshot serves this one too."""
        try:
            lock = small_files.open_lock(self._source.state_path / _LOCK_NAME)
        except OSError:  # no state directory yet: nothing can be saved, so there is nothing to share
            yield
            return
        try:
            saved, deadline = None, 0.0
            while not lock.try_acquire():
                if (now_saved := self._saved_stamp()) != saved or not deadline:
                    saved, deadline = now_saved, time.monotonic() + _TURN_SECONDS
                if time.monotonic() > deadline:
                    break  # a process that was stopped while it reads delays no other for long
                self._pause(_POLL_SECONDS)
            yield
        finally:
            lock.close()

    def _saved_stamp(self) -> tuple[int, int] | None:
        with suppress(OSError):
            status = (self._source.state_path / snapshot.NAME).stat()
            return status.st_ino, status.st_mtime_ns
        return None

    def _try_build(self) -> bool:
        """Read the log to its end; False if it was replaced or is damaged, and has to be read again."""
        # Compares the end of the log with the checkpoint first: nothing that is read in a replaced log is saved.
        self._log.catch_up()
        descriptor = log_file.open_for_reading(self._source.root)
        state, head = (AuditState(), None) if self.ignores_snapshot else self._source.load()
        reading = _Reading(descriptor, state, self._source.apply_to(state, self._source.restricted_seq), head)
        try:
            return self._read_to_end(reading)
        except _ReadingStoppedError:
            self._save(reading)
            raise
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _read_to_end(self, reading: "_Reading") -> bool:
        saved_seq = reading.chain.seq
        while True:
            before, end = reading.position, self._log.position
            for _ in reading.advance(end):
                self.progress = (reading.position, end)
                self._require_running()
                time.sleep(_PAUSE_SECONDS)
                if reading.chain.seq >= saved_seq + RECORDS_PER_SAVE:
                    self._save(reading)
                    saved_seq = reading.chain.seq
            if not reading.is_sound and not self._is_damage_confirmed():
                return False
            if self._log.hold_still(lambda file, continuity: self._take_over(reading, file, continuity)):
                return True
            if reading.position <= before:
                return False

    def _take_over(self, reading: "_Reading", file: LogFile | None, continuity: ContinuityCheck) -> bool:
        """Read the little that is left, and get the next records from now on; False if this is not the log's end."""
        follower = continuity.follower
        if self._stop.is_set() or follower.position - reading.position > BLOCK_BYTES:
            return False
        # The file that was read must be the one that the process follows.
        if reading.descriptor is not None and (
            file is None or not os.path.samestat(os.fstat(reading.descriptor), file.stat())
        ):
            return False
        for _ in reading.advance(follower.position):
            pass
        if reading.position != follower.position:
            return False
        if reading.is_sound and follower.is_sound:
            if not follower.chain.is_at(LogHead(reading.chain.seq, reading.chain.entry_hash, reading.chain.size)):
                return False
        elif self._damage_mark.read() is None:
            return False
        else:
            # It lacks what cannot be read any more. If the log is repaired, all of it is read again.
            reading.state.is_partial = self.found_damage = True
        self._on_done(reading.state)
        continuity.deliver_to(reading.apply)
        return True

    def _is_damage_confirmed(self) -> bool:
        """Whether the log is damaged, and not just replaced while it was read. Marks the damage."""
        if self._damage_mark.read() is None:

            def report(done: int, total: int) -> None:
                self.progress = (done, total)
                self._require_running()

            found = compute_verdict(self._source.root, self._source.state_path, report, alone=True)
            if is_damage(found.verdict):
                self._damage_mark.save(found)
        return self._damage_mark.read() is not None

    def _save(self, reading: "_Reading") -> None:
        """Save what was read so far, unless another process has saved more. Best effort."""
        head = reading.chain.head
        if self.ignores_snapshot or head is None or not reading.is_sound or self._damage_mark.read() is not None:
            return
        if reading.descriptor is None or not log_file.is_current(self._source.root, reading.descriptor):
            return
        with suppress(OSError):
            _, known = self._source.load()
            if known is None or known.seq < head.seq:
                restricted_seq = self._source.restricted_seq
                self._source.save(snapshot.encode(reading.state, head, restricted_seq, is_unfinished=True))

    def _pause(self, seconds: float) -> None:
        self._stop.wait(seconds)
        self._require_running()

    def _require_running(self) -> None:
        if self._stop.is_set():
            raise _ReadingStoppedError


class _Reading:
    """Position in one open file of the log, and the state projected up to there."""

    def __init__(self, descriptor: int | None, state: AuditState, apply: RecordCallback, head: LogHead | None) -> None:
        self.descriptor = descriptor
        self.state = state
        self.apply = apply
        self.chain = Chain(head)
        self.position = self.chain.size
        self.is_sound = True

    def advance(self, end: int) -> Iterator[None]:
        """Apply the records up to `end`, a few at a time; after a fault, those with a valid hash."""
        if self.descriptor is None:
            return
        for block in read_blocks(self.descriptor, self.position, end):
            for start in range(0, len(block), _LINES_PER_STEP):
                self._apply_lines(block[start : start + _LINES_PER_STEP])
                yield
        if not self.is_sound:
            self.position = end  # lines that are too long to be records were cut

    def _apply_lines(self, lines: list[bytes]) -> None:
        end = self.position + sum(map(len, lines))
        if self.is_sound:
            self.is_sound = self.chain.extend(lines, self.apply)
        if not self.is_sound:
            skipped = max(0, self.chain.size - self.position)
            for line in lines:
                skipped -= len(line)
                if skipped < 0:
                    for record in read_valid_records((line,)):
                        self.apply(record)
        self.position = end
