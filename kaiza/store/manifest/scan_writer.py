"""Writes one scan of the tree into the manifest: only what differs from the last one."""

import stat
import time

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
from kaiza.store.manifest.ignored_paths import IgnoredPaths
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
        self._moved: set[bytes] = set()  # directories that may have been moved to their place since the begin
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
        # What was there before a directory changed since the begin is known from an earlier scan, or not at all.
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
        self._insert_rows()
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
        is_ignored = self._ignored.is_ignored(chunk.directory, name, is_directory=stat.S_ISDIR(status.mode))
        flags = (IGNORED if is_ignored else 0) | (HIDDEN if self._ignored.is_hidden(path, status) else 0)
        if self._has_earlier and (self._is_changed(chunk) or chunk.directory in self._moved):
            flags |= MOVED
            if stat.S_ISDIR(status.mode):
                self._moved.add(path)
        if is_unsettled(status, chunk.seen_ns, has_times=chunk.has_times):
            flags |= UNSETTLED
        self._new_rows.append((chunk.directory, name, self.number, CURRENT, *status, flags, None, None))

    def _is_changed(self, chunk: Chunk) -> bool:
        """Whether names came into a directory, or went from it, since the begin. Kaiza itself changes `audit`."""
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

    def _insert_rows(self) -> None:
        query = "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        self._connection.executemany(query, self._new_rows)
        self._new_rows.clear()


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
