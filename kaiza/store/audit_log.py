"""The record on disk: one chained line per event, whole or not at all, and never a word about what is not there.

An append holds a thread's lock, then the file's; under both it reads what others appended, asks for the record,
writes it in one piece, and lets go before it syncs, so that waiting writers share the syncs.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kaiza.domain import errors, record
from kaiza.domain.record import Fault, Head, Verdict
from kaiza.store import log_file, state, torn_tail
from kaiza.store.accept import Accepted, accept
from kaiza.store.anchor import Anchor
from kaiza.store.damage import Damage
from kaiza.store.follower import Follower, Torn, against, judge_rest
from kaiza.store.log_file import LogFile
from kaiza.store.records import records
from kaiza.store.settling import Point, Settling
from kaiza.store.verify import verify

__all__ = ["Accepted", "AuditLog", "Fault", "Head", "Verdict", "accept", "records", "verify"]


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
        self._path = os.fspath(log_file.path_of(root))
        place = state.directory(root)
        self._anchor = Anchor(place)
        self._damage = Damage(place)
        self._settling = Settling(self._anchor, self._damage, lock_seconds)
        self._tell = follow
        self._follower = Follower(follow, start)
        self._sync_every = sync_every
        self._lock_seconds = lock_seconds
        self._threads = threading.Lock()
        self._file: LogFile | None = None
        self._known: Head | None = None
        """What this process saw in a log that it then lost hold of, and that must still be in there."""
        self._told: tuple[Head, int] | None = None
        """How far `follow` was told a log that this process then lost hold of, and in which era."""
        self._era = 0
        self._fresh = True
        self._was_damaged = False
        self._unrecorded: list[dict[str, Any]] = []

    def append(self, make: Callable[[], dict[str, Any]], *, durable: bool) -> dict[str, Any]:
        """The record that `make` composes, numbered, chained and written; on the disk and anchored where `durable`.

        `make` is called when everything that others appended has been followed, under the lock; what it raises passes,
        and nothing is written. AUDIT_LOCK_FAILED, AUDIT_LOG_FAILED: not written, or not certain to be. A durable
        record that announces or reports a change is SELF_AUDIT_FAILURE while the log is damaged; every other one goes
        to the end of what is there.
        """
        durable = durable or self._sync_every
        if durable:
            self._settling.refuse_if_failed()
        deadline = self._take_turn()
        try:
            file, size = self._enter(deadline, create=True)
            try:
                damage = self._look(file, size, mend=True)
                written = self._write(file, make, refuse=damage.verdict if durable and damage else None)
            finally:
                self._leave(file)
            point = self._point(file, damage)
        finally:
            self._threads.release()
        if durable:
            self._settling.now(point)
        else:
            self._settling.later(point)
        return written

    def catch_up(self) -> Verdict:
        """Follow what is new, and judge it, the tail and the anchor. Nothing is written to the log."""
        deadline = self._take_turn()
        try:
            if log_file.is_absent(self._root):
                return self._absent() or Verdict("intact", 0, None, None, anchored=False)
            file, size = self._enter(deadline, create=False)
            try:
                self._fresh = True
                found = self._look(file, size, mend=False)
                anchored = self._anchor.read() is not None
            finally:
                self._leave(file)
            return found or Verdict("intact", self._follower.chain.seq, self.head, None, anchored=anchored)
        finally:
            self._threads.release()

    def sync(self) -> None:
        """What was appended so far is durable and anchored when this returns."""
        self._take_turn()
        try:
            point = self._point(self._file, self._damage.holds()) if self._file is not None else None
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
        place = Path(self._path).parent
        return place.is_dir() and not place.is_symlink()

    @property
    def head(self) -> Head | None:
        """The verified head up to which `follow` was told; None where there is none, also while the log is damaged."""
        return self._follower.chain.head if self._follower.sound else None

    def close(self) -> None:
        """Everything is durable and anchored, and the log let go of, when this returns."""
        try:
            self._settling.close()
        finally:
            self._take_turn()
            self._file = None
            self._threads.release()

    def _take_turn(self) -> float:
        """One thread at a time; it hears until when it may wait for the file."""
        deadline = time.monotonic() + self._lock_seconds
        if not self._threads.acquire(timeout=self._lock_seconds):
            raise errors.SystemError.tool_failure(
                "AUDIT_LOCK_FAILED", human_message="Another call holds the record and did not let go. Try again."
            )
        return deadline

    def _enter(self, deadline: float, *, create: bool) -> tuple[LogFile, int]:
        """The file that the path names, locked, and its size. One that was replaced meanwhile is let go of."""
        while True:
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

    def _wait_for(self, file: LogFile, deadline: float) -> None:
        """Somebody writes: what can be followed before the lock need not be followed under it."""
        try:
            self._follower.advance(file, file.size())
            file.lock.acquire(deadline - time.monotonic())
        except OSError as refused:
            raise log_file.failure(refused) from refused
        except errors.SystemError:
            if file.size_at(self._path) is None:
                self._lost()
            raise

    def _leave(self, file: LogFile) -> None:
        try:
            file.lock.release()
        except errors.SystemError:
            file.close()
            self._lost()
            raise

    def _lost(self) -> None:
        """The path no longer names our file: what we saw must be in what stands there, which is told from the start."""
        self._file = None
        self._restart()

    def _restart(self) -> None:
        """The log is to be judged from its beginning; what was told is not told again."""
        seen = self._follower.seen if self._follower.sound else None
        if seen is not None and not self._follower.mute:
            self._told = (seen, self._era)
        if seen is not None and not self._was_damaged:
            self._known = seen
        self._follower = Follower(self._tell)
        self._follower.mute = self._told is not None
        self._fresh = True

    def _opened(self, *, create: bool) -> LogFile:
        file = log_file.open_log(self._root)
        if file is None:
            self._absent()
            file = log_file.open_log(self._root, create=create)
        if file is None:
            raise log_file.failure(sentence="The record is gone. Run 'kaiza audit verify'.")
        self._file = file
        return file

    def _absent(self) -> Verdict | None:
        """There is no log: damage, where one is known to have been there."""
        self._restart()
        known = self._head_from_elsewhere() or self._known
        if known is not None:
            self._found(Verdict("missing", 0, None, None, anchored=False))
        return self._damage.holds()

    def _head_from_elsewhere(self) -> Head | None:
        """What the anchor names. In another era than ours a person began a new log, and what we saw counts no more."""
        anchored = self._anchor.read()
        if anchored is not None and anchored.era != self._era:
            self._known = None
            self._era = anchored.era
        return anchored.head if anchored else None

    def _look(self, file: LogFile, size: int, *, mend: bool) -> Verdict | None:
        """Follow what others appended and judge it; what is the matter with the log, if anything. The lock is held."""
        held = self._damage.holds()
        try:
            if held is None and not self._fresh and not self._was_damaged and self._follower.is_at_end(file, size):
                return None
            return self._look_closely(file, size, held, mend=mend)
        except OSError as refused:
            raise log_file.failure(refused) from refused

    def _look_closely(self, file: LogFile, size: int, held: Verdict | None, *, mend: bool) -> Verdict | None:
        if held is None and self._was_damaged:
            self._restart()
            self._known, self._was_damaged = None, False
        elif not self._follower.stands_in(file, size):
            self._restart()
        self._follower.advance(file, size)
        trouble = self._trouble(file, size) if self._follower.sound else held
        if isinstance(trouble, Torn):
            trouble = self._torn(file, trouble, mend=mend)
        elif trouble is not None:
            self._found(trouble)
            self._follower.advance_damaged(file, size)
        if self._follower.mute:
            self._resume(file)
        self._was_damaged = self._was_damaged or held is not None
        return held or trouble

    def _resume(self, file: LogFile) -> None:
        """The log is judged; from here on it is told again. A log that a person began anew is told whole."""
        follower = self._follower
        if follower.sound and self._told is not None:
            told, era = self._told
            if against(follower.chain, file.descriptor, told) is None:
                self._follower = Follower(self._tell, told)
            elif era != self._era:
                self._follower = Follower(self._tell)
            self._follower.advance(file, follower.position)
        self._follower.mute = False

    def _trouble(self, file: LogFile, size: int) -> Verdict | Torn | None:
        behind = self._follower.position < size
        if not behind and not self._fresh:
            return None
        chain = self._follower.chain
        anchored = self._head_from_elsewhere()
        rest = judge_rest(chain, file.descriptor, size, anchored) if behind else None
        if isinstance(rest, Verdict):
            return rest
        found = against(chain, file.descriptor, anchored) or against(chain, file.descriptor, self._known)
        self._known, self._fresh = None, False
        return found or rest

    def _torn(self, file: LogFile, torn: Torn, *, mend: bool) -> Verdict | None:
        if not mend:
            return Verdict("torn_tail", self._follower.chain.seq, self.head, None, anchored=False)
        self._unrecorded.append(torn_tail.set_aside(self._root, file, torn))
        return None

    def _found(self, damage: Verdict) -> None:
        self._was_damaged = True
        self._damage.note(damage)

    def _write(self, file: LogFile, make: Callable[[], dict[str, Any]], *, refuse: str | None) -> dict[str, Any]:
        while self._unrecorded:
            self._put(file, self._unrecorded[0])
            del self._unrecorded[0]
        body = make()
        if refuse is not None and _is_about_change(body):
            raise errors.SystemError.tool_failure(
                "SELF_AUDIT_FAILURE",
                human_message="The record is damaged, so nothing may be changed. Ask a person to verify it.",
                cause={"verdict": refuse},
            )
        return self._put(file, body)

    def _put(self, file: LogFile, body: dict[str, Any]) -> dict[str, Any]:
        seq, entry_hash = self._follower.link
        line, whole = record.seal(body, seq + 1, entry_hash)
        written = b"\n" + line if self._follower.ragged else line
        file.append(written, self._follower.position)
        self._follower.own(line, whole, len(written))
        return whole

    def _point(self, file: LogFile, damage: Verdict | None) -> Point:
        return Point(file, self.head if damage is None else None, self._era, self._follower.position)


def _is_about_change(body: Mapping[str, Any]) -> bool:
    return body["kind"] in ("intent", "plan") or (body["kind"] == "call" and bool(body["changes"]))
