"""Append-only, hash-chained audit log shared by several processes.

An append holds a thread's lock, then the file's. Under both it follows what others appended, composes the record and
writes it with one `write`; it unlocks before it syncs, so that no writer waits for another's disk.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from kaiza.domain import errors, record
from kaiza.domain.record import Body, Head, Verdict
from kaiza.store import log_file, state
from kaiza.store.anchor import Anchor
from kaiza.store.damage import Damage
from kaiza.store.lock import late
from kaiza.store.log_file import LogFile
from kaiza.store.settling import Point, Settling
from kaiza.store.watch import Watch
from kaiza.store.whole_check import Stamp, WholeCheck

_TROUBLE = {
    "root_replaced": "Another directory has taken the workspace's place since the server began. Restart the server.",
    "missing": "The audit/ directory is gone. Put it back, then run kaiza audit verify.",
    "replaced": "Something else is in the place of the audit/ directory. Put it back, then run kaiza audit verify.",
}
_MUCH = 1 << 16
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
        start: Head | None = None,
        sync_every: bool = False,
        lock_seconds: float = 5.0,
    ) -> None:
        self._root = root
        self._path = os.fsencode(log_file.path_of(root))
        place = state.directory(root)
        self._damage = Damage(place)
        self._settling = Settling(place, self._damage, lock_seconds)
        self._watch = Watch(root, follow, start, Anchor(place), self._damage)
        self._sync_every = sync_every
        self._lock_seconds = lock_seconds
        self._threads = threading.Lock()
        self._file: LogFile | None = None
        self._directory = log_file.HeldDirectory(root)
        self.whole = WholeCheck(root, place, self._damage)

    def append(self, compose: Callable[[], Body], *, durable: bool) -> dict[str, Any]:
        """The record that `compose` gives, numbered, chained and written; on disk and anchored where `durable`.

        `compose` is called under the log's lock, when everything that others appended has been followed: what it finds
        still holds when the record is written. It refuses by raising; then nothing is written. AUDIT_LOCK_FAILED,
        AUDIT_LOG_FAILED: not written, or not certain to be. A durable record that announces or reports a change is
        SELF_AUDIT_FAILURE while the log is damaged; every other one goes to the end of what is there.
        """
        durable = durable or self._sync_every
        if durable:
            self._settling.refuse_if_failed()
        written, point = self._append_locked(compose, durable=durable)
        if durable:
            self._settling.now(point)
        else:
            self._settling.later(point)
        return written

    def _append_locked(self, compose: Callable[[], Body], *, durable: bool) -> tuple[dict[str, Any], Point]:
        deadline = self._take_turn()
        try:
            file, size = self._enter(deadline, create=True)
            try:
                before = Stamp.of(file.stat())
                damage = self._watch.look(file, size, mend=True)
                written = self._write(file, compose, durable=durable)
                self.whole.follow_append(before, Stamp.of(file.stat()))
            finally:
                self._leave(file)
            return written, self._point(file, damage)
        finally:
            self._threads.release()

    def follow(self) -> None:
        """What others appended so far was told when this returns.

        Where the log simply goes on, nobody is locked out or waited for; a line that is being written is looked at
        again under the lock, and so is everything else that is not as it should be.
        """
        self._take_turn()
        try:
            self.require_place()
            file = self._file
            size = file.size_at(self._path) if file is not None else None
            done = file is not None and size is not None and self._watch.goes_on(file, size)
        except OSError as refused:
            raise log_file.failure(refused) from refused
        finally:
            self._threads.release()
        if not done:
            self.catch_up()

    def catch_up(self) -> Verdict:
        """Follow what is new, and judge it, the tail and the anchor. Nothing is written to the log."""
        deadline = self._take_turn()
        try:
            self.require_place()
            if log_file.is_absent(self._root):
                return self._watch.absent() or Verdict("intact", 0, None, None, anchored=False)
            file, size = self._enter(deadline, create=False)
            try:
                return self._watch.verdict(file, size)
            finally:
                self._leave(file)
        finally:
            self._threads.release()

    def sync(self) -> None:
        """What was appended so far is durable and anchored when this returns."""
        self._take_turn()
        try:
            point = self._point(self._file, None) if self._file is not None else None
        finally:
            self._threads.release()
        if point is not None:
            self._settling.now(point)

    def damage(self) -> str | None:
        """The verdict that stops changes until a full verification is intact or a person accepts it, or None."""
        found = self._damage.holds()
        return found.verdict if found else None

    def exists(self) -> bool:
        """Whether `audit/` is there."""
        place = log_file.path_of(self._root).parent
        return place.is_dir() and not place.is_symlink()

    @property
    def is_held(self) -> bool:
        """Whether this process has had the log in its hands: from then on there is no answer without a record."""
        return self._directory.is_held

    def require_place(self) -> None:
        """AUDIT_LOG_FAILED where the workspace or its `audit/` is no longer the directory that is held."""
        try:
            trouble = self._directory.trouble()
        except OSError as refused:
            raise log_file.failure(refused) from refused
        if trouble is None:
            return
        if trouble != "root_replaced":
            self._damage.note(Verdict(trouble, 0, None, None, anchored=False))
        raise log_file.failure(sentence=_TROUBLE[trouble], reason=trouble)

    @property
    def head(self) -> Head | None:
        """The verified head up to which `follow` was told; None where there is none, also while the log is damaged."""
        return self._watch.head

    def close(self) -> None:
        """Everything is durable and anchored, and the log let go of, when this returns."""
        self.whole.stop()
        try:
            self._settling.close()
        finally:
            self._take_turn()
            self._file = None
            self._directory.close()
            self._threads.release()

    def _take_turn(self) -> float:
        """One thread at a time; it hears until when it may wait for the file."""
        deadline = time.monotonic() + self._lock_seconds
        if not self._threads.acquire(timeout=self._lock_seconds):
            raise late(self._lock_seconds)
        return deadline

    def _enter(self, deadline: float, *, create: bool) -> tuple[LogFile, int]:
        """The file that the path names, locked, and its size. One that was replaced meanwhile is let go of."""
        while True:
            self.require_place()
            file = self._file or self._opened(create=create)
            if not file.lock.taken():
                self._wait_for(file, deadline)
            try:
                size = file.size_at(self._path)
            except BaseException:
                self._leave(file)
                raise
            if size is not None:
                return file, size
            self._leave(file)
            self._lost()
            if time.monotonic() > deadline:  # the path names another file at each look
                raise late(self._lock_seconds)

    def _wait_for(self, file: LogFile, deadline: float) -> None:
        self._follow_ahead(file)
        try:
            file.lock.acquire(deadline - time.monotonic())
        except errors.SystemError:
            if file.size_at(self._path) is None:
                self._lost()
            raise

    def _follow_ahead(self, file: LogFile) -> None:
        """Follow much before the lock is asked for, so that nobody has to wait for it; a few lines are not worth it."""
        try:
            size = file.size()
            if size > self._watch.follower.position + _MUCH:
                self._watch.follower.advance(file, size)
        except OSError as refused:
            raise log_file.failure(refused) from refused

    def _leave(self, file: LogFile) -> None:
        try:
            file.lock.release()
        except errors.SystemError:
            file.close()
            self._lost()
            raise

    def _lost(self) -> None:
        """The path no longer names our file, or its lock is in doubt."""
        self._file = None
        self._watch.restart()

    def _opened(self, *, create: bool) -> LogFile:
        file = log_file.open_log(self._root)
        if file is None:
            self._watch.absent()
            file = log_file.open_log(self._root, create=create)
        if file is None:
            raise log_file.failure(sentence="The record is gone. Run 'kaiza audit verify'.")
        self._directory.hold()
        self._file = file
        self._follow_ahead(file)
        return file

    def _write(self, file: LogFile, compose: Callable[[], Body], *, durable: bool) -> dict[str, Any]:
        while self._watch.unrecorded:
            self._put(file, self._watch.unrecorded[0])
            del self._watch.unrecorded[0]
        body = compose()
        if durable and _is_about_change(body) and (refuse := self.damage()) is not None:
            raise errors.SystemError.tool_failure(
                "SELF_AUDIT_FAILURE",
                human_message="The record is damaged, so nothing may be changed. Ask a person to verify it.",
                cause={"verdict": refuse},
            )
        return self._put(file, body)

    def _put(self, file: LogFile, body: Body) -> dict[str, Any]:
        follower = self._watch.follower
        seq, entry_hash = follower.link
        line, whole = record.seal(body, seq + 1, entry_hash)
        written = b"\n" + line if follower.ragged else line
        file.append(written, follower.position)
        follower.own(line, whole, len(written))
        return whole

    def _point(self, file: LogFile, damage: Verdict | None) -> Point:
        return Point(file, self._watch.head if damage is None else None, self._watch.era)


def _is_about_change(told: Mapping[str, Any]) -> bool:
    return told["kind"] in ("intent", "plan") or (told["kind"] == "call" and bool(told["changes"]))
