"""Background half of the manifest: writes the start of a session by one scan, then reads the content not known yet.

A scan writes only what differs from the last one.
"""

import sqlite3
import stat
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import chain

from kaiza.store.manifest import database
from kaiza.store.manifest.database import (
    ABSENT,
    CURRENT,
    HIDDEN,
    IGNORED,
    MOVED,
    UNSETTLED,
    Database,
    Row,
    below,
    is_unchanged,
)
from kaiza.store.manifest.hashing import ContentReader
from kaiza.store.manifest.ignored_paths import IgnoredPaths
from kaiza.store.manifest.keeper import ManifestKeeper, PendingBegin
from kaiza.store.manifest.tree import AUDIT, Chunk, Stat, join

_COMMIT_SECONDS = 0.25
_FINE_TICK_NS = 20_000_000
_COARSE_TICK_NS = 3_000_000_000
_SECOND_NS = 1_000_000_000


class ScanWriter:
    """One scan, in transactions of a quarter of a second. It counts as whole only after `finish`."""

    def __init__(self, database: Database, ignored: IgnoredPaths, begun_ns: int, seq: int) -> None:
        self._database = database
        self._ignored = ignored
        self._begun_ns = begun_ns
        self._connection = database.connection
        self._new_rows: list[tuple[object, ...]] = []
        self._moved: set[bytes] = set()  # directories that may have been moved to their place since the start
        self._has_earlier = database.last_scan(whole=True) is not None
        last = database.last_scan()
        self.number = last.number + 1 if last else 1
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute("INSERT INTO scans VALUES (?, ?, NULL, ?)", (self.number, begun_ns, seq))
        self._commit_at = time.monotonic() + _COMMIT_SECONDS

    def add_session(self, session_id: str, begun_ns: int, seq: int) -> None:
        """Make this scan the one that a session is compared with."""
        whole = self._database.last_scan(whole=True)
        values = (session_id, self.number, begun_ns, seq, whole.number if whole else 0)
        self._connection.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?)", values)

    def write_chunk(self, chunk: Chunk) -> None:
        """Compare the entries with the rows of the last scan, and write the differences."""
        # What was there before a directory changed since the start is known from an earlier scan, or not at all.
        if not chunk.is_listed or (self._is_changed(chunk) and not self._has_earlier):
            self._connection.execute("INSERT OR IGNORE INTO unlisted VALUES (?, ?)", (self.number, chunk.directory))
        if not chunk.is_listed:
            return
        rows = self._database.rows(chunk.directory, CURRENT - 1, chunk.after, chunk.through)
        for name, status in chunk.entries.items():
            values = rows.pop(name, None)
            if values is None:
                self._replace_row(chunk, name, status, None)
            elif not is_unchanged(values, status):
                self._replace_row(chunk, name, status, Row.from_columns(values))
        for values in rows.values():
            self._remove_row(Row.from_columns(values), chunk.ctime_ns)
        query = "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        self._connection.executemany(query, self._new_rows)
        self._new_rows.clear()
        if time.monotonic() > self._commit_at:
            self.commit()
            self._connection.execute("BEGIN IMMEDIATE")
            self._commit_at = time.monotonic() + _COMMIT_SECONDS

    def commit(self) -> None:
        """Commit what was written so far."""
        self._connection.execute("COMMIT")

    def finish(self) -> None:
        """Note that the whole tree was seen."""
        self._connection.execute("UPDATE scans SET ended = ? WHERE scan = ?", (time.time_ns(), self.number))
        self.commit()

    def _replace_row(self, chunk: Chunk, name: bytes, status: Stat, row: Row | None) -> None:
        if row is not None:
            self._end_rows(row, keeps_below=stat.S_ISDIR(status.mode))
        path = join(chunk.directory, name)
        flags = self._ignored.flags(chunk.directory, name, status)
        if self._has_earlier and (self._is_changed(chunk) or chunk.directory in self._moved):
            flags |= MOVED
            if stat.S_ISDIR(status.mode):
                self._moved.add(path)
        if is_unsettled(status, chunk.seen_ns, has_times=chunk.has_times):
            flags |= UNSETTLED
        self._new_rows.append((chunk.directory, name, self.number, CURRENT, *status, flags, None, None))

    def _is_changed(self, chunk: Chunk) -> bool:
        """Whether names came into a directory, or went from it, since the start. Kaiza itself changes `audit`."""
        return chunk.ctime_ns > self._begun_ns and chunk.directory != AUDIT

    def _remove_row(self, row: Row, directory_ctime_ns: int) -> None:
        self._end_rows(row, keeps_below=False)
        # It may have been there when the session began: the time tells, when the session is compared.
        if not row.has(ABSENT) and directory_ctime_ns > self._begun_ns:
            absent = row.stat._replace(ctime_ns=directory_ctime_ns)
            flags = row.flags & (IGNORED | HIDDEN) | ABSENT
            self._new_rows.append((row.directory, row.name, self.number, CURRENT, *absent, flags, None, None))

    def _end_rows(self, row: Row, *, keeps_below: bool) -> None:
        """End a row, and those below a directory that is gone."""
        self._connection.execute(
            "UPDATE entries SET gone = ? WHERE directory = ? AND name = ? AND first = ?",
            (self.number, row.directory, row.name, row.first),
        )
        if stat.S_ISDIR(row.stat.mode) and not keeps_below and not row.has(ABSENT):
            self._connection.execute(
                "UPDATE entries SET gone = ? WHERE (directory = ? OR (directory > ? AND directory < ?)) AND gone = ?",
                (self.number, *below(row.path), CURRENT),
            )


def is_unsettled(status: Stat, seen_ns: int, *, has_times: bool = True) -> bool:
    """Whether another change after it was seen could leave the same times."""
    if not stat.S_ISREG(status.mode):
        return False
    if not has_times:
        return True
    # Whole seconds hint at a file system that keeps no fractions: its times change only every second or two.
    tick = _FINE_TICK_NS if status.ctime_ns % _SECOND_NS else _COARSE_TICK_NS
    return status.ctime_ns > seen_ns - tick


def prune(database: Database, kept_sessions: int) -> None:
    """Remove sessions but the newest, and the rows that no other session is compared with."""
    execute = database.connection.execute
    execute("BEGIN IMMEDIATE")
    execute(
        "DELETE FROM sessions WHERE session NOT IN (SELECT session FROM sessions ORDER BY begun DESC LIMIT ?)",
        (kept_sessions,),
    )
    (oldest,) = execute("SELECT min(iif(previous > 0, previous, scan)) FROM sessions").fetchone()
    last = database.last_scan(whole=True)
    bound = min(oldest or CURRENT, last.number if last else 0)
    execute("DELETE FROM entries WHERE gone <= ?", (bound,))
    execute("DELETE FROM unlisted WHERE scan < ?", (bound,))
    execute("DELETE FROM scans WHERE scan < ?", (bound,))
    execute("COMMIT")


KEPT_SESSIONS = 200
_PAGE = 500
# Between two pages another process, or a call of this one, gets its turn.
_PAUSE = 0.002
_STEPS_BETWEEN_CHECKS = 100_000


def write_begin(keeper: ManifestKeeper, batch: Sequence[PendingBegin]) -> None:
    """Write the start of these sessions by one scan, then hash what it found. OSError where that fails."""
    identity = keeper.find_identity()
    if identity is None:
        return
    try:
        _write_begin(keeper, batch, identity)
    except sqlite3.OperationalError as error:  # busy, or the disk is full: the sessions have no manifest
        raise OSError(str(error)) from error
    except sqlite3.DatabaseError as error:
        lock = keeper.acquire_lock()
        if lock is not None:
            with closing(lock):
                database.remove(keeper.state_path)  # the next session begins a new one
        raise OSError(str(error)) from error


def _write_begin(keeper: ManifestKeeper, batch: Sequence[PendingBegin], identity: str) -> None:
    lock = keeper.acquire_lock()
    if lock is None:
        return
    with closing(lock), closing(database.open_or_create(keeper.state_path, identity)) as opened:
        # One statement may take seconds, as removing the rows of a million files does: the server's end stops it.
        opened.connection.set_progress_handler(keeper.is_stopping, _STEPS_BETWEEN_CHECKS)
        _write_scan(keeper, batch, opened)
        for pending in batch:
            pending.written.set()
        lock.release()
        _hash_pending(keeper, opened)


def _write_scan(keeper: ManifestKeeper, batch: Sequence[PendingBegin], opened: Database) -> None:
    ignored = IgnoredPaths(keeper.root, keeper.is_unreadable)
    begun_ns, seq = min(each.begun_ns for each in batch), min(each.seq for each in batch)
    writer = ScanWriter(opened, ignored, begun_ns, seq)
    for pending in batch:
        writer.add_session(pending.session_id, pending.begun_ns, pending.seq)
    # The last one's walk: what it sees was seen after the start of each, as the start of a session has to be.
    for chunk in chain(batch[-1].chunks, batch[-1].rest):
        if keeper.is_stopping():
            writer.commit()
            return
        if chunk is not None:
            writer.write_chunk(chunk)
    writer.finish()
    prune(opened, KEPT_SESSIONS)


def _hash_pending(keeper: ManifestKeeper, opened: Database) -> None:
    """Read the files and links whose content is not known. What changes during that is left to the next scan."""
    after = (b"", b"")
    with closing(ContentReader(keeper.root, keeper.is_stopping)) as reader:
        while rows := opened.pending_rows(after, _PAGE):
            found = list[tuple[Row, bytes, int | None]]()
            for row in rows:
                if keeper.is_stopping():
                    break
                content = reader.read(row.directory, row.name)
                if content is not None and content.stat == row.stat:
                    found.append((row, content.hash, content.lines))
            opened.save_hashes(found)
            if keeper.is_stopping():
                return
            after = rows[-1].directory, rows[-1].name
            time.sleep(_PAUSE)
