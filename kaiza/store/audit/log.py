"""Append-only, hash-chained audit log shared by several processes.

An append holds a mutex among the threads, then the lock on the file. Under both it follows what other processes
appended, composes the record and writes it with one `write`. It unlocks before it fsyncs, so that no writer waits for
another one's disk.
"""

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from kaiza.domain import errors
from kaiza.domain.audit import record
from kaiza.domain.audit.record import Body, LogHead, Record, Verdict
from kaiza.store.audit import log_file
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.continuity import ContinuityCheck, GapCallback
from kaiza.store.audit.damage_mark import DamageMark
from kaiza.store.audit.durability import Durability, LogPosition
from kaiza.store.audit.log_file import LogFile
from kaiza.store.audit.verification.background import BackgroundVerification, LogStamp
from kaiza.store.disk import lock_timeouts, state_dir
from kaiza.store.disk.file_lock import lock_timeout

_DIRECTORY_PROBLEMS = {
    "root_replaced": "The workspace directory was replaced while the server was running. Restart the server.",
    "missing": "The audit/ directory is missing. Restore it, then run 'kaiza audit verify'.",
    "replaced": "The audit/ directory was replaced. Restore the original, then run 'kaiza audit verify'.",
}
_MAX_ATTEMPTS_NEAR = 3
"""How often the log is followed to its end before its lock is taken although more is to be read."""


_Result = TypeVar("_Result")


class AuditLog:
    """One process's access to the log of a workspace.

    `follow` is called once for each record, in order, whichever process appended it, also while the log is damaged.
    `start` is a verified head: records up to it are not passed to `follow`. `stamp` is called under the log's lock with
    each record and its number, and returns the record to write.
    """

    def __init__(
        self,
        root: str,
        *,
        follow: Callable[[Record], None],
        start: LogHead | None = None,
        stamp: Callable[[Body, int], Body] = lambda body, _seq: body,
        lock_seconds: float = lock_timeouts.LOG,
    ) -> None:
        self._root = root
        self._path = os.fsencode(log_file.path_of(root))
        directory = state_dir.path_of(root)
        self._damage_mark = DamageMark(directory)
        self._durability = Durability(directory, self._damage_mark, lock_seconds)
        self._continuity = ContinuityCheck(root, follow, start, Checkpoint(directory), self._damage_mark)
        self._stamp = stamp
        self.sync_every = False
        """Whether each record is fsynced before its append returns."""
        self._lock_seconds = lock_seconds
        self._thread_lock = threading.Lock()  # protects `_file`, `_continuity` and `_directory`
        self._file: LogFile | None = None
        self._directory = log_file.AuditDirectory(root)
        self.background_check = BackgroundVerification(root, directory, self._damage_mark)

    def append(self, compose: Callable[[], Body], *, durable: bool) -> Record:
        """Append the record that `compose` returns; with `durable` it is fsynced when this returns.

        `compose` is called under the log's lock, after everything that others appended was followed, so what it reads
        there still holds when the record is written. If it raises, nothing is written. AUDIT_LOCK_FAILED or
        AUDIT_LOG_FAILED: not written, or not certain to be durable. SELF_AUDIT_FAILURE: the log is damaged, and the
        record is a durable one of a change; all other records are still appended to a damaged log.
        """
        durable = durable or self.sync_every
        if durable:
            self._durability.raise_if_failed()
        with self._thread_locked() as deadline:
            file, size = self._lock_file(deadline, create=True)
            try:
                before = LogStamp.from_stat(file.stat())
                damage = self._continuity.check(file, size, repair=True)
                written = self._compose_and_write(file, compose, durable=durable)
                self.background_check.note_append(before, LogStamp.from_stat(file.stat()))
            finally:
                self._unlock_file(file)
            position = self._log_position(file, damage)
        if durable:
            self._durability.sync_now(position)
        else:
            self._durability.sync_soon(position)
        return written

    def follow(self) -> None:
        """Pass on what other processes have appended so far."""
        with self._thread_locked():
            try:
                self.require_directory()
                file = self._file
                size = file.size_if_current(self._path) if file is not None else None
                # Without the log's lock, so that a server that only reads neither waits for writers nor delays them.
                done = file is not None and size is not None and self._continuity.try_advance(file, size)
            except OSError as refused:
                raise log_file.log_error(refused) from refused
        # A line that is just being written looks like damage until its writer releases the lock.
        if not done:
            self.catch_up()

    def replay(self, follow: Callable[[Record], None]) -> None:
        """Pass every record on again, from the first, to another function; the next `catch_up` does so."""
        with self._thread_locked():
            self._continuity.replay(follow)

    def skip_long_backlogs(self, on_gap: GapCallback) -> None:
        """From now on skip a very long backlog: report where it ends to `on_gap`, and use the `follow` it returns."""
        self._continuity.on_gap = on_gap

    def hold_still(self, act: Callable[[LogFile | None, ContinuityCheck], _Result]) -> _Result:
        """Call `act` with the open file and the position in it, while no record is followed or appended here."""
        with self._thread_locked():
            return act(self._file, self._continuity)

    @property
    def position(self) -> int:
        """Offset up to which this process has followed the log."""
        return self._continuity.follower.position

    def catch_up(self) -> Verdict:
        """Follow what is new under the lock, and check it, the last known record and the checkpoint. Read-only."""
        with self._thread_locked() as deadline:
            self.require_directory()
            if log_file.is_absent(self._root):
                return self._continuity.check_missing() or Verdict("intact", 0, None, None, anchored=False)
            file, size = self._lock_file(deadline, create=False)
            try:
                return self._continuity.tail_verdict(file, size)
            finally:
                self._unlock_file(file)

    def run_locked(self, action: Callable[[], _Result]) -> _Result:
        """Run an action under the log's lock, after everything that others appended was followed.

        SELF_AUDIT_FAILURE, and the action is not run, if the log is damaged.
        """
        with self._thread_locked() as deadline:
            file, size = self._lock_file(deadline, create=False)
            try:
                damage = self._continuity.check(file, size, repair=False)
                if damage is not None:
                    raise _damage_error(damage.verdict)
                return action()
            finally:
                self._unlock_file(file)

    def sync(self) -> None:
        """Make everything appended so far durable."""
        with self._thread_locked():
            position = self._log_position(self._file, None) if self._file is not None else None
        if position is not None:
            self._durability.sync_now(position)

    def damage(self) -> str | None:
        """The verdict that stops changes until a full verification is intact or a person accepts it, or None."""
        found = self._damage_mark.read()
        return found.verdict if found else None

    @property
    def has_been_opened(self) -> bool:
        """Whether this process has opened the log. From then on no call is answered without a record."""
        return self._directory.is_open

    def require_directory(self) -> None:
        """AUDIT_LOG_FAILED if the workspace or its `audit/` has been replaced or removed."""
        try:
            problem = self._directory.detect_replacement()
        except OSError as refused:
            raise log_file.log_error(refused) from refused
        if problem is None:
            return
        # Not for a replaced workspace: the mark would stop changes in the directory that has its name now.
        if problem != "root_replaced":
            self._damage_mark.save(Verdict(problem, 0, None, None, anchored=False))
        raise log_file.log_error(sentence=_DIRECTORY_PROBLEMS[problem], reason=problem)

    @property
    def head(self) -> LogHead | None:
        """The last record that was followed; None if there is none or the log is damaged."""
        return self._continuity.head

    def close(self) -> None:
        """Make everything durable, then close the log."""
        self.background_check.stop()
        try:
            self._durability.close()
        finally:
            with self._thread_locked():
                self._file = None
                self._directory.close()

    @contextmanager
    def _thread_locked(self) -> Iterator[float]:
        """Hold the mutex; yields the deadline for the lock on the file, which shares the waiting time."""
        deadline = time.monotonic() + self._lock_seconds
        if not self._thread_lock.acquire(timeout=self._lock_seconds):
            raise errors.SystemError.tool_failure(
                "AUDIT_LOCK_FAILED",
                human_message="This server is still reading or writing the audit log for another call. Try again.",
                cause={"waited_ms": int(self._lock_seconds * 1000), "held_by": "this process"},
            )
        try:
            yield deadline
        finally:
            self._thread_lock.release()

    def _lock_file(self, deadline: float, *, create: bool) -> tuple[LogFile, int]:
        """The file that the path names, locked, and its size."""
        for attempt in itertools.count(1):
            self.require_directory()
            file = self._file or self._open_file(create=create)
            if not file.lock.try_acquire():
                self._wait_for_lock(file, deadline)
            try:
                size = file.size_if_current(self._path)
                # Checked under the lock: between opening and locking, an acceptance may have put a new log in place.
                is_near = size is not None and self._continuity.is_near_end(file, size)
            except BaseException:
                self._unlock_file(file)
                raise
            if size is not None and (is_near or attempt >= _MAX_ATTEMPTS_NEAR):
                return file, size
            self._unlock_file(file)
            if size is not None:
                self._follow_before_lock(file)
                continue
            self._forget_file()
            if time.monotonic() > deadline:  # the log is being replaced over and over
                break
        raise lock_timeout(self._lock_seconds)

    def _wait_for_lock(self, file: LogFile, deadline: float) -> None:
        self._follow_before_lock(file)
        try:
            file.lock.acquire(deadline - time.monotonic())
        except errors.SystemError:
            # The holder may keep a file that was replaced. Then the next call locks the new one.
            if file.size_if_current(self._path) is None:
                self._forget_file()
            raise

    def _follow_before_lock(self, file: LogFile) -> None:
        """Follow a long backlog before locking, so that other writers need not wait for it."""
        try:
            self._continuity.follow_backlog(file)
        except OSError as refused:
            raise log_file.log_error(refused) from refused

    def _unlock_file(self, file: LogFile) -> None:
        try:
            file.lock.release()
        except errors.SystemError:
            # Closing releases the lock in any case. Otherwise this process would lock every other one out.
            file.close()
            self._forget_file()
            raise

    def _forget_file(self) -> None:
        self._file = None
        self._continuity.restart()

    def _open_file(self, *, create: bool) -> LogFile:
        file = log_file.open_for_append(self._root)
        if file is None:
            # Before a new log is created: if one is known to have existed, its absence is damage.
            self._continuity.check_missing()
            file = log_file.open_for_append(self._root, create=create)
        if file is None:
            raise log_file.log_error(sentence="The audit log is missing. Run 'kaiza audit verify'.")
        self._directory.keep_open()
        self._file = file
        self._follow_before_lock(file)
        return file

    def _compose_and_write(self, file: LogFile, compose: Callable[[], Body], *, durable: bool) -> Record:
        while self._continuity.pending_records:
            # Removed only once it is written: a failed write leaves it to the next append.
            self._write_record(file, self._continuity.pending_records[0])
            del self._continuity.pending_records[0]
        body = compose()
        is_change = body["kind"] in ("intent", "plan") or (body["kind"] == "call" and bool(body["changes"]))
        if durable and is_change and (verdict := self.damage()) is not None:
            raise _damage_error(verdict)
        return self._write_record(file, body)

    def _write_record(self, file: LogFile, body: Body) -> Record:
        follower = self._continuity.follower
        seq, entry_hash = follower.link
        line, written = record.serialize_and_hash(self._stamp(body, seq + 1), seq + 1, entry_hash)
        content = b"\n" + line if follower.is_missing_newline else line
        file.append(content, follower.position)
        follower.append_own(line, written, len(content))
        return written

    def _log_position(self, file: LogFile, damage: Verdict | None) -> LogPosition:
        return LogPosition(file, self._continuity.head if damage is None else None, self._continuity.epoch)


def _damage_error(verdict: str) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "SELF_AUDIT_FAILURE",
        human_message="The audit log is damaged, so changes are refused. Ask a person to run 'kaiza audit verify'.",
        cause={"verdict": verdict},
    )
