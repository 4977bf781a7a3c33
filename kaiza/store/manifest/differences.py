"""Differences between the start of a session, as the manifest has it, and the workspace now. Reads only.

Where the scan of the session's start reached a file late, or not at all, its change time decides: later than the start
means changed since, with unknown old content; earlier means that it was there, unless it may have been moved there.
"""

import stat
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from kaiza.domain.manifest.comparison import Difference
from kaiza.domain.manifest.report import EntryState, Gap
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.manifest.database import ABSENT, HIDDEN, IGNORED, MOVED, UNSETTLED, Database, Row, Scan, is_unchanged
from kaiza.store.manifest.hashing import ContentReader
from kaiza.store.manifest.ignored_paths import IgnoredPaths
from kaiza.store.manifest.tree import Chunk, Stat, is_skipped, join, walk_tree


@dataclass(frozen=True, slots=True)
class ManifestReference:
    """The start of a session: the scan that began with it and the whole one before (0: none)."""

    begun_ns: int
    scan: Scan | None = None
    previous: int = 0
    unlisted: frozenset[bytes] = frozenset()

    @property
    def number(self) -> int:
        """Number of the scan."""
        return self.scan.number if self.scan else 0

    def is_late(self, row: Row) -> bool:
        """Whether the entry had, or may have, changed since the start when the scan reached it."""
        is_content = row.has(ABSENT) or row.stat.kind in ("file", "link")
        seen_ns = (self.scan.ended_ns or time.time_ns()) if self.scan else 0
        is_since = row.has(MOVED) or self.is_since(row.stat.ctime_ns, seen_ns)
        return is_content and row.first == self.number and is_since

    def is_since(self, ctime_ns: int, now_ns: int) -> bool:
        """Whether a change time lies after the start. One that lies in the future says nothing."""
        return self.begun_ns < ctime_ns <= now_ns

    def has_seen(self, directory: bytes) -> bool:
        """Whether the scan has seen the entries of a directory."""
        if self.scan is None or self.scan.ended_ns is None:
            return False
        return not any(directory == each or directory.startswith(each + b"/") or not each for each in self.unlisted)


class LiveComparison:
    """One comparison with the workspace now. `touched` are paths that are looked at in any case."""

    def __init__(
        self,
        root: ConfinedRoot,
        database: Database | None,
        reference: ManifestReference,
        ignored: IgnoredPaths,
        is_over: Callable[[], bool],
    ) -> None:
        self.entries = 0
        self.uncovered = 0
        self.gaps: set[Gap] = set()
        self._root = root
        self._database = database
        self._reference = reference
        self._ignored = ignored
        self._is_over = is_over
        self._reader = ContentReader(root, is_over)
        self._empty: dict[bytes, Difference] = {}

    def iterate(self, touched: Collection[bytes]) -> Iterator[Difference]:
        """Every path that differs, and each touched one. Ends early when the time is over."""
        try:
            for path in touched:
                yield from self._compare_touched(path)
            for chunk in walk_tree(self._root):
                if self._is_over():
                    self.gaps.add("end_unfinished")
                    self._empty.clear()  # whether they are empty is not known
                    known = self._database.count_rows(self._reference.number) if self._database else 0
                    self.uncovered += max(1, known - self.entries)
                    break
                if chunk is not None:
                    yield from self._compare_chunk(chunk, touched)
            yield from self._empty.values()
        finally:
            self._reader.close()

    def _compare_touched(self, path: bytes) -> Iterator[Difference]:
        directory, _, name = path.rpartition(b"/")
        if is_skipped(directory, name):
            return
        row = self._database.row(directory, name, self._reference.number) if self._database else None
        status = self._reader.stat(directory, name)
        now_ns = time.time_ns()
        found = self._compare_entry(directory, name, row, status, now_ns, is_touched=True) if status else None
        removed = self._removed(row, now_ns) if row and (status is None or _has_lost_entries(row, status)) else ()
        differences = [each for each in (found, *removed) if each is not None]
        yield from differences or [Difference(path_text(path), None, None)]

    def _compare_chunk(self, chunk: Chunk, touched: Collection[bytes]) -> Iterator[Difference]:
        if not chunk.is_listed:
            self.gaps.add("unlisted")
            self.uncovered += 1
            return
        self.entries += len(chunk.entries)
        if not chunk.has_times:
            self.gaps.add("no_times")
        created = self._empty.pop(chunk.directory, None)
        if created is not None and not chunk.entries and chunk.through is None:
            yield created
        yield from self._compare_entries(chunk, touched)

    def _compare_entries(self, chunk: Chunk, touched: Collection[bytes]) -> Iterator[Difference]:
        reference, rows = self._reference, dict[bytes, tuple[Any, ...]]()
        if self._database is not None:
            rows = self._database.rows(chunk.directory, reference.number, chunk.after, chunk.through)
        for name, status in chunk.entries.items():
            values = rows.pop(name, None)
            is_same = values is not None and is_unchanged(values, status)
            if values is not None and is_same and values[2] != reference.number:
                continue
            row = Row.from_columns(values) if values else None
            if is_same and row is not None and not reference.is_late(row):
                continue
            if join(chunk.directory, name) not in touched:
                yield from self._compare_present(chunk, name, row, status)
        for row in map(Row.from_columns, rows.values()):
            if row.path not in touched:
                yield from self._removed(row, chunk.ctime_ns)

    def _compare_present(self, chunk: Chunk, name: bytes, row: Row | None, status: Stat) -> Iterator[Difference]:
        found = self._compare_entry(chunk.directory, name, row, status, chunk.seen_ns)
        if found is not None:
            yield found
        if row is not None and _has_lost_entries(row, status):
            yield from self._removed_below(row, self._reference.number)

    def _find_earlier(self, row: Row) -> Row | None:
        """The row of the scan before the session's."""
        previous = self._reference.previous
        found = self._database.row(row.directory, row.name, previous) if self._database and previous else None
        return None if found is None or found.has(ABSENT) else found

    def _compare_entry(
        self, directory: bytes, name: bytes, row: Row | None, status: Stat, now_ns: int, *, is_touched: bool = False
    ) -> Difference | None:
        """The difference of an entry that is there now; None if it is the same, or was already so."""
        before, is_known = self._state_before(directory, row, status, now_ns)
        # The change time alone shows a change of a file. That of a directory changes with its entries.
        is_since = status.kind in ("file", "link") and self._reference.is_since(status.ctime_ns, now_ns)
        if not is_known and not is_touched and not is_since:
            return None
        path = join(directory, name)
        flags = self._ignored.flags(directory, name, status)
        difference = Difference(
            path_text(path),
            state_of(before) if before else None,
            self._state_now(directory, name, before, status, flags, is_touched=is_touched),
            is_known,
            before is None or has_other_stat(before.stat, status),
            bool(flags & IGNORED),
            before.stat.inode if before else 0,
            status.inode,
            bool(flags & HIDDEN),
        )
        if is_touched:
            return difference
        if is_known and before is None and status.kind == "directory":
            self._empty[path] = difference
            return None
        return None if is_known and is_equal(difference) else difference

    def _state_before(self, directory: bytes, row: Row | None, status: Stat, now_ns: int) -> tuple[Row | None, bool]:
        """The row that describes the entry at the session's start, and whether what was there is known."""
        reference = self._reference
        if row is not None and reference.is_late(row):
            earlier = self._find_earlier(row)
            return earlier, earlier is not None or reference.previous > 0
        if row is not None and row.has(ABSENT):
            row = None
        if reference.has_seen(directory) or (row is not None and row.first == reference.number):
            return row, True
        # The scan did not come here: what it would have found is known only of files that have not changed since.
        return (row, True) if row is not None and reference.is_since(status.ctime_ns, now_ns) else (None, False)

    def _state_now(
        self, directory: bytes, name: bytes, row: Row | None, status: Stat, flags: int, *, is_touched: bool
    ) -> EntryState:
        kind = status.kind
        size = status.size if kind in ("file", "link") else None
        state = EntryState(kind, stat.S_IMODE(status.mode), size)
        if size is None or (flags & (IGNORED | HIDDEN) == IGNORED and not is_touched):
            return state
        if row is not None and row.hash and not row.has(UNSETTLED) and row.stat.is_same(status):
            return state._replace(hash=row.hash.hex(), lines=row.lines)
        content = self._reader.read(directory, name)
        return state if content is None else state._replace(hash=content.hash.hex(), lines=content.lines)

    def _removed(self, row: Row, parent_ctime_ns: int) -> Iterator[Difference]:
        """The deletion of an entry, and of all below a directory; nothing where it was gone at the start."""
        reference, is_late = self._reference, self._reference.is_late(row)
        earlier = self._find_earlier(row) if is_late else None
        if row.has(ABSENT) and earlier is None:
            return
        if is_late and earlier is None and reference.previous:
            return  # created since, and deleted again
        is_seen = reference.has_seen(row.directory) or row.first == reference.number
        if not is_seen and not reference.is_since(parent_ctime_ns, time.time_ns()):
            return
        before, number = (earlier, reference.previous) if earlier else (row, reference.number)
        if before.stat.kind == "directory":
            yield from self._removed_below(before, number)
        else:
            yield _removal(before, is_known=not is_late or earlier is not None)

    def _removed_below(self, directory: Row, number: int) -> Iterator[Difference]:
        """The deletions below a directory; an empty one itself."""
        database = self._database
        if database is None or not database.has_rows_below(directory.path, number):
            if directory.stat.kind == "directory":
                yield _removal(directory)
            return
        for row in database.rows_below(directory.path, number):
            is_leaf = row.stat.kind != "directory" or not database.has_rows_below(row.path, number)
            if is_leaf and not row.has(ABSENT):
                yield _removal(row)


def iterate_earlier(database: Database, reference: ManifestReference) -> Iterator[Difference]:
    """What differed between the previous whole scan and the session's start."""
    older, newer = reference.previous, reference.number
    pair: dict[str, Row | None] = {}
    path = b""
    for row in database.changed_rows(older, newer):
        if row.path != path:
            yield from _earlier_difference(database, reference, pair)
            pair, path = {}, row.path
        if row.first <= older < row.gone:
            pair["before"] = row
        if row.first <= newer < row.gone:
            pair["after"] = row
    yield from _earlier_difference(database, reference, pair)


def _earlier_difference(
    database: Database, reference: ManifestReference, pair: dict[str, Row | None]
) -> Iterator[Difference]:
    before, after = pair.get("before"), pair.get("after")
    if after is not None and reference.is_late(after):
        return
    before = None if before is None or before.has(ABSENT) else before
    after = None if after is None or after.has(ABSENT) else after
    row = after or before
    if row is None:
        return
    number = reference.previous if after is None else reference.number
    is_whole_directory = row.stat.kind == "directory" and None in (before, after)
    if is_whole_directory and database.has_rows_below(row.path, number):
        return  # its entries are differences of their own
    difference = Difference(
        path_text(row.path),
        state_of(before) if before else None,
        state_of(after) if after else None,
        True,
        before is None or after is None or has_other_stat(before.stat, after.stat),
        row.has(IGNORED),
        before.stat.inode if before else 0,
        after.stat.inode if after else 0,
        row.has(HIDDEN),
    )
    if not is_equal(difference):
        yield difference


def _removal(row: Row, *, is_known: bool = True) -> Difference:
    state = state_of(row) if is_known else None
    flags = row.has(IGNORED), row.has(HIDDEN)
    return Difference(path_text(row.path), state, None, is_known, True, flags[0], row.stat.inode, is_hidden=flags[1])


def _has_lost_entries(row: Row, status: Stat) -> bool:
    """Whether something else replaced a directory."""
    return row.stat.kind == "directory" and status.kind != "directory" and not row.has(ABSENT)


def state_of(row: Row) -> EntryState:
    """The state that a row describes."""
    kind = row.stat.kind
    size = row.stat.size if kind in ("file", "link") else None
    return EntryState(kind, stat.S_IMODE(row.stat.mode), size, row.hash.hex() if row.hash else None, row.lines)


def has_other_stat(one: Stat, other: Stat) -> bool:
    """Whether the content may differ. A change of the mode alone explains another change time."""
    if (one.size, one.mtime_ns, one.inode) != (other.size, other.mtime_ns, other.inode):
        return True
    return one.ctime_ns != other.ctime_ns and one.mode == other.mode


def is_equal(difference: Difference) -> bool:
    """Whether both states are the same, as far as they are known."""
    before, after = difference.before, difference.after
    if before is None or after is None:
        return before is after
    if before.kind != after.kind or before.mode != after.mode:
        return False
    if before.kind not in ("file", "link"):
        return True
    if before.hash and after.hash:
        return before.hash == after.hash
    return not difference.has_other_stat


def path_text(path: bytes) -> str:
    """The path as text. Bytes that are not UTF-8 become lone surrogates."""
    return path.decode(errors="surrogateescape")
