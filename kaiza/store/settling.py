"""Makes what was appended durable, and only then lets the anchor name it."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kaiza.domain import errors
from kaiza.domain.record import Head
from kaiza.store.anchor import Anchor
from kaiza.store.damage import Damage
from kaiza.store.lock import late
from kaiza.store.log_file import LogFile, failure

_LATEST = 0.8


class Point(NamedTuple):
    """How far a log has been written. `head` is None where it is damaged: then the anchor stays where it was."""

    file: LogFile
    head: Head | None
    era: int


class Settling:
    """Syncs at once where asked to, and what nobody waits for within a second. A failed sync is final."""

    def __init__(self, place: Path, damage: Damage, lock_seconds: float) -> None:
        self._lock_seconds = lock_seconds
        self._anchor = Anchor(place)
        self._damage = damage
        self._one_by_one = threading.Lock()
        self._news = threading.Condition()
        self._pending: Point | None = None
        self._closing = False
        self._thread: threading.Thread | None = None
        self._failed = False

    def refuse_if_failed(self) -> None:
        """AUDIT_LOG_FAILED where an earlier record did not become durable."""
        if self._failed:
            raise failure(sentence="An earlier record did not reach the disk. Restart Kaiza, then verify the record.")

    def now(self, point: Point) -> None:
        """Everything up to there is durable, and anchored, when this returns. AUDIT_LOG_FAILED otherwise.

        What can be made ready is ready before the disk is: between the disk and the answer there is one small write.
        """
        if not self._one_by_one.acquire(timeout=self._lock_seconds):
            raise late(self._lock_seconds)
        try:
            self.refuse_if_failed()
            head = point.head if self._damage.holds() is None else None
            step = self._anchor.step(head, point.era) if head is not None else None
            self._sync(point)
            if step is not None:
                self._anchor.take(step)
        except OSError as refused:
            sentence = "The anchor outside the workspace could not be written. Check the state directory."
            raise failure(refused, sentence) from refused
        finally:
            self._one_by_one.release()

    def later(self, point: Point) -> None:
        """The same, in the background, at the latest one second from now."""
        with self._news:
            fresh = self._pending is None
            self._pending = point
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="kaiza-sync", daemon=True)
                self._thread.start()
            elif fresh:
                self._news.notify()

    def close(self) -> None:
        """The background has ended and everything is settled when this returns."""
        with self._news:
            self._closing = True
            self._news.notify()
        if self._thread is not None:
            self._thread.join()
        try:
            self._flush()
        finally:
            if self._one_by_one.acquire(timeout=self._lock_seconds):  # else a sync is stuck, and the anchor with it
                self._anchor.close()
                self._one_by_one.release()

    def _flush(self) -> None:
        with self._news:
            pending, self._pending = self._pending, None
        if pending is None:
            return
        try:
            self.now(pending)
        except errors.SystemError:
            with self._news:
                self._pending = self._pending or pending
            raise

    def _sync(self, point: Point) -> None:
        try:
            os.fdatasync(point.file.descriptor)
        except OSError as refused:
            self._failed = True
            raise failure(refused) from refused

    def _work(self) -> None:
        while not self._failed:
            with self._news:
                self._news.wait_for(lambda: self._pending is not None or self._closing)
                self._news.wait_for(lambda: self._closing, _LATEST)
                if self._closing:
                    return
            with suppress(errors.SystemError):  # it is still pending, and is tried again unless a sync failed
                self._flush()
