"""The manifest as an SQLite file: what was seen at each path, from which scan on, and until which.

A row is never changed after its scan, so a session that began earlier still finds the state at its own start. The file
may be deleted at any time. One that is damaged, or that another workspace's key made, is replaced by an empty one.
"""

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from kaiza.store.disk import lock_timeouts, small_files
from kaiza.store.manifest.tree import Stat, join

NAME = "manifest.sqlite"
CURRENT = (1 << 63) - 1
"""`gone` of a row that is still true."""
IGNORED, HIDDEN, UNSETTLED, ABSENT, MOVED = 1, 2, 4, 8, 16
"""Flags of a row. HIDDEN: no agent may read it, and its hash is not shown. UNSETTLED: its times do not tell of another
change, because it lies in memory or had changed in the tick of the clock in which it was seen. ABSENT: it was deleted
at `ctime` or before. MOVED: its directory had changed since the start when the scan reached it, so it may have been
moved there since."""
_TABLES = {
    "meta": "name TEXT PRIMARY KEY, value TEXT NOT NULL",
    "scans": "scan INTEGER PRIMARY KEY, begun INTEGER NOT NULL, ended INTEGER, seq INTEGER NOT NULL",
    "sessions": "session TEXT PRIMARY KEY, scan INTEGER NOT NULL, begun INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " previous INTEGER NOT NULL",
    "unlisted": "scan INTEGER, directory BLOB, PRIMARY KEY (scan, directory)",
    "entries": "directory BLOB, name BLOB, first INTEGER, gone INTEGER NOT NULL, mode INTEGER NOT NULL,"
    " size INTEGER NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL, inode INTEGER NOT NULL,"
    " flags INTEGER NOT NULL, hash BLOB, lines INTEGER, PRIMARY KEY (directory, name, first)",
}
_SCHEMA = tuple(f"CREATE TABLE {name} ({columns}) STRICT, WITHOUT ROWID" for name, columns in _TABLES.items())
_COLUMNS = "directory, name, first, gone, mode, size, mtime, ctime, inode, flags, hash, lines"
_SUFFIXES = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite keeps beside the manifest."""
_BUSY = frozenset({"SQLITE_BUSY", "SQLITE_LOCKED"})
_FETCHED_ROWS = 500


class Row(NamedTuple):
    """One entry as it was seen from scan `first` until scan `gone`."""

    directory: bytes
    name: bytes
    first: int
    gone: int
    stat: Stat
    flags: int
    hash: bytes | None = None
    lines: int | None = None

    @classmethod
    def from_columns(cls, values: Sequence[Any]) -> "Row":
        """A row as selected. The tables are strict: SQLite has checked the types."""
        directory, name, first, gone = values[:4]
        return cls(directory, name, first, gone, Stat(*values[4:9]), values[9], values[10], values[11])

    @property
    def path(self) -> bytes:
        """Path of the entry."""
        return join(self.directory, self.name)

    def has(self, flag: int) -> bool:
        """Whether a flag is set."""
        return bool(self.flags & flag)


def is_unchanged(values: Sequence[Any], status: Stat) -> bool:
    """Whether an entry still has the status in the columns of its row, and that tells that its content is the same."""
    # Nearly every entry of the tree comes here, so the row is not built.
    if values[9] & (UNSETTLED | ABSENT):
        return False
    return values[4:9] == status or Stat(*values[4:9]).is_same(status)


class Scan(NamedTuple):
    """One pass over the tree. `ended` is None until it has seen all of it; `seq` is the log's last record before."""

    number: int
    begun_ns: int
    ended_ns: int | None
    seq: int


class SessionBegin(NamedTuple):
    """What a session is compared with: the scan that began with it, and the last whole one before (0: none)."""

    scan: int
    begun_ns: int
    seq: int
    previous: int


class UnusableError(Exception):
    """The file is damaged, or not of this workspace."""


class Database:
    """Open manifest of one workspace, for one thread. sqlite3.Error where the file is damaged or in use."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def rows(
        self, directory: bytes, scan: int, after: bytes = b"", through: bytes | None = None
    ) -> dict[bytes, tuple[Any, ...]]:
        """The columns of one directory's rows as of a scan, by name; only names after `after`, up to `through`."""
        end = "" if through is None else " AND name <= ?"
        selected = self.connection.execute(
            f"SELECT {_COLUMNS} FROM entries WHERE directory = ? AND name > ?{end} AND first <= ? AND gone > ?",  # noqa: S608  constants
            (directory, after, *(() if through is None else (through,)), scan, scan),
        )
        return {values[1]: values for values in selected.fetchall()}

    def row(self, directory: bytes, name: bytes, scan: int) -> Row | None:
        """The row of one path as of a scan."""
        values = self.connection.execute(
            f"SELECT {_COLUMNS} FROM entries WHERE directory = ? AND name = ? AND first <= ? AND gone > ?",  # noqa: S608  constants
            (directory, name, scan, scan),
        ).fetchone()
        return None if values is None else Row.from_columns(values)

    def rows_below(self, directory: bytes, scan: int) -> Iterator[Row]:
        """All rows below a directory as of a scan, in order."""
        return self._iterate(
            f"SELECT {_COLUMNS} FROM entries WHERE (directory = ? OR (directory > ? AND directory < ?))"  # noqa: S608  constants
            " AND first <= ? AND gone > ?",
            (*below(directory), scan, scan),
        )

    def changed_rows(self, older: int, newer: int) -> Iterator[Row]:
        """Rows that began or ended after the scan `older`, up to `newer`, in the order of paths."""
        return self._iterate(
            f"SELECT {_COLUMNS} FROM entries WHERE (first > ? AND first <= ?) OR (gone > ? AND gone <= ?)"  # noqa: S608  constants
            " ORDER BY directory, name, first",
            (older, newer, older, newer),
        )

    def has_rows_below(self, directory: bytes, scan: int) -> bool:
        """Whether a directory had entries as of a scan."""
        query = "SELECT 1 FROM entries WHERE directory = ? AND first <= ? AND gone > ? AND NOT flags & ? LIMIT 1"
        return self.connection.execute(query, (directory, scan, scan, ABSENT)).fetchone() is not None

    def count_rows(self, scan: int) -> int:
        """Number of entries as of a scan."""
        query = "SELECT count(*) FROM entries WHERE first <= ? AND gone > ? AND NOT flags & ?"
        return int(self.connection.execute(query, (scan, scan, ABSENT)).fetchone()[0])

    def scan(self, number: int) -> Scan | None:
        """A scan by number."""
        values = self.connection.execute("SELECT * FROM scans WHERE scan = ?", (number,)).fetchone()
        return None if values is None else Scan(*values)

    def last_scan(self, *, whole: bool = False) -> Scan | None:
        """The last scan, or the last that saw the whole tree."""
        condition = "WHERE ended IS NOT NULL" if whole else ""
        query = f"SELECT * FROM scans {condition} ORDER BY scan DESC LIMIT 1"  # noqa: S608  constants
        values = self.connection.execute(query).fetchone()
        return None if values is None else Scan(*values)

    def session(self, session_id: str) -> SessionBegin | None:
        """What a session is compared with; None if nothing was kept of its start."""
        query = "SELECT scan, begun, seq, previous FROM sessions WHERE session = ?"
        values = self.connection.execute(query, (session_id,)).fetchone()
        return None if values is None else SessionBegin(*values)

    def pending_rows(self, after: tuple[bytes, bytes], most: int) -> list[Row]:
        """The next current rows whose content is still to be read, in order, after a directory and name."""
        selected = self.connection.execute(
            f"SELECT {_COLUMNS} FROM entries WHERE (directory, name) > (?, ?) AND gone = ? AND hash IS NULL"  # noqa: S608  constants
            " AND NOT flags & ? AND flags & ? != ? AND (mode & ?) IN (?, ?) ORDER BY directory, name LIMIT ?",
            (*after, CURRENT, ABSENT, IGNORED | HIDDEN, IGNORED, stat.S_IFMT(0xFFFF), stat.S_IFREG, stat.S_IFLNK, most),
        )
        return [Row.from_columns(values) for values in selected.fetchall()]

    def save_hashes(self, found: Sequence[tuple[Row, bytes, int | None]]) -> None:
        """Add what was read to the rows, unless they have ended since."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(
            "UPDATE entries SET hash = ?, lines = ? WHERE directory = ? AND name = ? AND first = ? AND ctime = ?",
            [(digest, lines, *row[:3], row.stat.ctime_ns) for row, digest, lines in found],
        )
        self.connection.execute("COMMIT")

    def unlisted(self, scan: int) -> set[bytes]:
        """Directories that could not be read in a scan."""
        query = "SELECT directory FROM unlisted WHERE scan = ?"
        return {directory for (directory,) in self.connection.execute(query, (scan,))}

    def _iterate(self, query: str, parameters: Sequence[object]) -> Iterator[Row]:
        with closing(self.connection.execute(query, parameters)) as cursor:
            while values := cursor.fetchmany(_FETCHED_ROWS):
                yield from map(Row.from_columns, values)


def below(directory: bytes) -> tuple[bytes, bytes, bytes]:
    """A directory, and the bounds between which all directories below it are, both excluded."""
    return directory, directory + b"/", directory + b"0"  # "0" follows "/"


def open_database(state_path: Path, identity: str) -> Database | None:
    """Open the manifest for reading; None if there is none, or none that can be used."""
    path = state_path / NAME
    try:
        _require_own_file(path)
        return Database(_connect(path, identity, read_only=True))
    except (OSError, sqlite3.Error, UnusableError):
        return None


def open_or_create(state_path: Path, identity: str) -> Database:
    """Open the manifest for writing, in place of one that cannot be used. The caller holds the lock on it."""
    path = state_path / NAME
    try:
        _require_own_file(path)
        return Database(_connect(path, identity, read_only=False))
    except (OSError, sqlite3.Error, UnusableError) as error:
        if getattr(error, "sqlite_errorname", None) in _BUSY:
            raise
        remove(state_path)  # also without the file: one of SQLite's beside it would be taken for the new one's
    return Database(_create(path, identity))


def remove(state_path: Path) -> None:
    """Remove the manifest, with the files that SQLite keeps beside it."""
    # First the journals: left beside a new file, they would be taken for its own.
    for suffix in (*_SUFFIXES, ""):
        with suppress(FileNotFoundError):
            os.unlink(f"{state_path / NAME}{suffix}")  # noqa: PTH108  as text


def _require_own_file(path: Path) -> None:
    status = path.lstat()
    owners = {os.geteuid(), path.parent.stat().st_uid}
    if not stat.S_ISREG(status.st_mode) or status.st_uid not in owners or status.st_mode & 0o022:
        raise UnusableError
    # SQLite would wait for the other end of a FIFO.
    for suffix in _SUFFIXES:
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.lstat(f"{path}{suffix}").st_mode):
                raise UnusableError


def _create(path: Path, identity: str) -> sqlite3.Connection:
    small_files.write_new(path, b"", durable=False)  # SQLite syncs what it writes
    connection = _open_connection(path)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("INSERT INTO meta VALUES ('identity', ?)", (identity,))
        connection.execute("COMMIT")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _connect(path: Path, identity: str, *, read_only: bool) -> sqlite3.Connection:
    connection = _open_connection(path)
    try:
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        _require_identity(connection, identity)
    except (sqlite3.Error, UnusableError):
        connection.close()
        raise
    return connection


def _require_identity(connection: sqlite3.Connection, identity: str) -> None:
    """Require exactly our tables, and the proof that this machine made them for this workspace."""
    schema = tuple(sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"))
    if schema != _SCHEMA:
        raise UnusableError
    if connection.execute("SELECT name, value FROM meta").fetchmany(2) != [("identity", identity)]:
        raise UnusableError


def _open_connection(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=lock_timeouts.MANIFEST_DATABASE, isolation_level=None, check_same_thread=False
    )
    try:
        # The file may be anyone's: nothing in its schema is run, and damage is found rather than mapped.
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA mmap_size = 0")
        connection.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection
