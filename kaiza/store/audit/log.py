"""Append-only, hash-chained audit log shared by several processes.

An append holds a thread's lock, then the file's. Under both it follows what others appended, composes the record and
writes it with one `write`; it unlocks before it syncs, so that no writer waits for another's disk.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from kaiza.domain import errors
from kaiza.domain.audit import record
from kaiza.domain.audit.record import Body, LogHead, Verdict
from kaiza.store.audit import log_file
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.continuity import ContinuityCheck
from kaiza.store.audit.damage_mark import DamageMark
from kaiza.store.audit.durability import Durability, LogPosition
from kaiza.store.audit.log_file import LogFile
from kaiza.store.audit.verification.background import BackgroundVerification, LogStamp
from kaiza.store.disk import state_dir
from kaiza.store.disk.file_lock import lock_timeout

_DIRECTORY_PROBLEMS = {
    "root_replaced": "Another directory has taken the workspace's place since the server began. Restart the server.",
    "missing": "The audit/ directory is gone. Put it back, then run kaiza audit verify.",
    "replaced": "Something else is in the place of the audit/ directory. Put it back, then run kaiza audit verify.",
}
_FAR_BEHIND_BYTES = 1 << 16
"""So far behind, in bytes of the log, it is worth following before the lock."""


class AuditLog:
    """One process's hand on the log of a workspace.

    `follow` is told every record once, in order, our own and others'; also what is recorded while the log is damaged.
    `start` is the verified head up to which it already knows everything.
    """

    def __init__(
        self,
        root: str,
        *,
        follow: Callable[[dict[str, Any]], None],
        start: LogHead | None = None,
        sync_every: bool = False,
        lock_seconds: float = 5.0,
    ) -> None:
        self._root = root
        self._path = os.fsencode(log_file.path_of(root))
        place = state_dir.path_of(root)
        self._damage_mark = DamageMark(place)
        self._durability = Durability(place, self._damage_mark, lock_seconds)
        self._continuity = ContinuityCheck(root, follow, start, Checkpoint(place), self._damage_mark)
        self._sync_every = sync_every
        self._lock_seconds = lock_seconds
        self._thread_lock = threading.Lock()
        self._file: LogFile | None = None
        self._directory = log_file.AuditDirectory(root)
        self.background_check = BackgroundVerification(root, place, self._damage_mark)

    def append(self, compose: Callable[[], Body], *, durable: bool) -> dict[str, Any]:
        """The record that `compose` gives, numbered, chained and written; on disk and anchored where `durable`.

        `compose` is called under the log's lock, when everything that others appended has been followed: what it finds
        still holds when the record is written. It refuses by raising; then nothing is written. AUDIT_LOCK_FAILED,
        AUDIT_LOG_FAILED: not written, or not certain to be. A durable record that announces or reports a change is
        SELF_AUDIT_FAILURE while the log is damaged; every other one goes to the end of what is there.
        """
        durable = durable or self._sync_every
        if durable:
            self._durability.raise_if_failed()
        written, point = self._append_locked(compose, durable=durable)
        if durable:
            self._durability.sync_now(point)
        else:
            self._durability.sync_soon(point)
        return written

    def _append_locked(self, compose: Callable[[], Body], *, durable: bool) -> tuple[dict[str, Any], LogPosition]:
        deadline = self._acquire_thread_lock()
        try:
            file, size = self._lock_file(deadline, create=True)
            try:
                before = LogStamp.from_stat(file.stat())
                damage = self._continuity.check(file, size, mend=True)
                written = self._compose_and_write(file, compose, durable=durable)
                self.background_check.note_append(before, LogStamp.from_stat(file.stat()))
            finally:
                self._unlock_file(file)
            return written, self._log_position(file, damage)
        finally:
            self._thread_lock.release()

    def follow(self) -> None:
        """What others appended so far was told when this returns.

        Where the log simply goes on, nobody is locked out or waited for; a line that is being written is looked at
        again under the lock, and so is everything else that is not as it should be.
        """
        self._acquire_thread_lock()
        try:
            self.require_directory()
            file = self._file
            size = file.size_if_current(self._path) if file is not None else None
            done = file is not None and size is not None and self._continuity.try_advance(file, size)
        except OSError as refused:
            raise log_file.log_error(refused) from refused
        finally:
            self._thread_lock.release()
        if not done:
            self.catch_up()

    def catch_up(self) -> Verdict:
        """Follow what is new, and judge it, the tail and the anchor. Nothing is written to the log."""
        deadline = self._acquire_thread_lock()
        try:
            self.require_directory()
            if log_file.is_absent(self._root):
                return self._continuity.check_missing() or Verdict("intact", 0, None, None, anchored=False)
            file, size = self._lock_file(deadline, create=False)
            try:
                return self._continuity.tail_verdict(file, size)
            finally:
                self._unlock_file(file)
        finally:
            self._thread_lock.release()

    def sync(self) -> None:
        """What was appended so far is durable and anchored when this returns."""
        self._acquire_thread_lock()
        try:
            point = self._log_position(self._file, None) if self._file is not None else None
        finally:
            self._thread_lock.release()
        if point is not None:
            self._durability.sync_now(point)

    def damage(self) -> str | None:
        """The verdict that stops changes until a full verification is intact or a person accepts it, or None."""
        found = self._damage_mark.read()
        return found.verdict if found else None

    def has_directory(self) -> bool:
        """Whether `audit/` is there."""
        place = log_file.path_of(self._root).parent
        return place.is_dir() and not place.is_symlink()

    @property
    def has_been_opened(self) -> bool:
        """Whether this process has had the log in its hands: from then on there is no answer without a record."""
        return self._directory.is_open

    def require_directory(self) -> None:
        """AUDIT_LOG_FAILED where the workspace or its `audit/` is no longer the directory that is held."""
        try:
            trouble = self._directory.detect_replacement()
        except OSError as refused:
            raise log_file.log_error(refused) from refused
        if trouble is None:
            return
        if trouble != "root_replaced":
            self._damage_mark.save(Verdict(trouble, 0, None, None, anchored=False))
        raise log_file.log_error(sentence=_DIRECTORY_PROBLEMS[trouble], reason=trouble)

    @property
    def head(self) -> LogHead | None:
        """The verified head up to which `follow` was told; None where there is none, also while the log is damaged."""
        return self._continuity.head

    def close(self) -> None:
        """Everything is durable and anchored, and the log let go of, when this returns."""
        self.background_check.stop()
        try:
            self._durability.close()
        finally:
            self._acquire_thread_lock()
            self._file = None
            self._directory.close()
            self._thread_lock.release()

    def _acquire_thread_lock(self) -> float:
        """One thread at a time; it hears until when it may wait for the file."""
        deadline = time.monotonic() + self._lock_seconds
        if not self._thread_lock.acquire(timeout=self._lock_seconds):
            raise lock_timeout(self._lock_seconds)
        return deadline

    def _lock_file(self, deadline: float, *, create: bool) -> tuple[LogFile, int]:
        """The file that the path names, locked, and its size. One that was replaced meanwhile is let go of."""
        while True:
            self.require_directory()
            file = self._file or self._open_file(create=create)
            if not file.lock.try_acquire():
                self._wait_for_lock(file, deadline)
            try:
                size = file.size_if_current(self._path)
            except BaseException:
                self._unlock_file(file)
                raise
            if size is not None:
                return file, size
            self._unlock_file(file)
            self._forget_file()
            if time.monotonic() > deadline:  # the path names another file at each look
                raise lock_timeout(self._lock_seconds)

    def _wait_for_lock(self, file: LogFile, deadline: float) -> None:
        self._follow_before_lock(file)
        try:
            file.lock.acquire(deadline - time.monotonic())
        except errors.SystemError:
            if file.size_if_current(self._path) is None:
                self._forget_file()
            raise

    def _follow_before_lock(self, file: LogFile) -> None:
        """Follow much before the lock is asked for, so that nobody has to wait for it; a few lines are not worth it."""
        try:
            size = file.size()
            if size > self._continuity.follower.position + _FAR_BEHIND_BYTES:
                self._continuity.follower.advance(file, size)
        except OSError as refused:
            raise log_file.log_error(refused) from refused

    def _unlock_file(self, file: LogFile) -> None:
        try:
            file.lock.release()
        except errors.SystemError:
            file.close()
            self._forget_file()
            raise

    def _forget_file(self) -> None:
        """The path no longer names our file, or its lock is in doubt."""
        self._file = None
        self._continuity.restart()

    def _open_file(self, *, create: bool) -> LogFile:
        file = log_file.open_for_append(self._root)
        if file is None:
            self._continuity.check_missing()
            file = log_file.open_for_append(self._root, create=create)
        if file is None:
            raise log_file.log_error(sentence="The record is gone. Run 'kaiza audit verify'.")
        self._directory.keep_open()
        self._file = file
        self._follow_before_lock(file)
        return file

    def _compose_and_write(self, file: LogFile, compose: Callable[[], Body], *, durable: bool) -> dict[str, Any]:
        while self._continuity.pending_records:
            self._write_record(file, self._continuity.pending_records[0])
            del self._continuity.pending_records[0]
        body = compose()
        if durable and _is_change_record(body) and (refuse := self.damage()) is not None:
            raise errors.SystemError.tool_failure(
                "SELF_AUDIT_FAILURE",
                human_message="The record is damaged, so nothing may be changed. Ask a person to verify it.",
                cause={"verdict": refuse},
            )
        return self._write_record(file, body)

    def _write_record(self, file: LogFile, body: Body) -> dict[str, Any]:
        follower = self._continuity.follower
        seq, entry_hash = follower.link
        line, whole = record.serialize_and_hash(body, seq + 1, entry_hash)
        written = b"\n" + line if follower.is_missing_newline else line
        file.append(written, follower.position)
        follower.append_own(line, whole, len(written))
        return whole

    def _log_position(self, file: LogFile, damage: Verdict | None) -> LogPosition:
        return LogPosition(file, self._continuity.head if damage is None else None, self._continuity.epoch)


def _is_change_record(told: Mapping[str, Any]) -> bool:
    return told["kind"] in ("intent", "plan") or (told["kind"] == "call" and bool(told["changes"]))
