"""Batches of a person's undo, each small enough for one record and for the free space of the disk."""

import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kaiza.domain.audit import canonical_json
from kaiza.domain.audit.record import Record
from kaiza.domain.change import Change
from kaiza.domain.paths.rel_path import RelPath

MAX_BATCH_BYTES = 160 * 1024
"""Bytes of a batch's changes in its record; the rest of the record needs room too."""
_ID_BYTES = 40
_MAX_MODE = 0o7777
_SIZE_IN_STAMP = 2
_MAX_STORED_COPY = 1 << 20
"""Larger files are not copied into the blob store, but renamed."""
_OVERHEAD_BYTES = 20 << 10
"""Directory entries, the journal and the records: a few blocks each."""


@dataclass(frozen=True, slots=True)
class UndoBatch:
    """Changes that are made together, and the ids of the calls that they undo, newest first."""

    changes: tuple[Change, ...]
    undone: tuple[str, ...]


class UndoneCalls:
    """Ids of the calls that an undo undoes, newest first, and which of them changed which path.

    Of each record only the id is kept, and 8 bytes for each of its paths.
    """

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._numbers: dict[str, array[int]] = {}
        self._later_names: dict[str, set[str]] = {}

    def note(self, newest_first: Iterable[Record], is_selected: Callable[[Record], bool]) -> Iterator[Record]:
        """Note each selected record as all pass through; the newest comes first."""
        for row in newest_first:
            if is_selected(row):
                for change in row.changes:
                    self._note_change(len(self._ids), change["path"], change["source"] or change["path"])
                self._ids.append(row.request_id or "")
            yield row

    def _note_change(self, number: int, path: str, source: str) -> None:
        # Older calls of both names of a moved file count for both, and for every name that it had later.
        names = self._later_names.get(path, {path}) | self._later_names.get(source, {source})
        for name in names:
            self._numbers.setdefault(name, array("q")).append(number)
        if source != path:
            self._later_names[path] = self._later_names[source] = names

    def find(self, change: Change) -> set[int]:
        """Numbers of the calls that changed the paths of a change; the newest has the lowest."""
        return {number for path in change.touched_paths for number in self._numbers.get(str(path), ())}

    @property
    def all_ids(self) -> tuple[str, ...]:
        """The ids of all calls, newest first, each once."""
        return tuple(dict.fromkeys(self._ids))

    def ids(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """The ids of these calls, newest first, each once."""
        return tuple(dict.fromkeys(self._ids[number] for number in sorted(numbers)))


def split_batches(
    changes: Iterable[Change], undone_calls: UndoneCalls, free_bytes: Callable[[], int] = lambda: sys.maxsize
) -> Iterator[UndoBatch]:
    """Split the changes, in their order, into batches that one record and the free space of the disk can hold."""
    batch: list[Change] = []
    undone: set[int] = set()
    size, room, removed = 0, free_bytes(), set[RelPath]()
    for change in changes:
        calls = undone_calls.find(change)
        change_size = _record_bytes(change) + _ID_BYTES * len(calls - undone)
        room -= _disk_bytes(change)
        is_full = size + change_size > MAX_BATCH_BYTES or room < 0
        # A file may take the place of a directory or a file that this batch deletes.
        if batch and (is_full or (change.operation != "delete" and _has_conflict(change.path, removed))):
            yield UndoBatch(tuple(batch), undone_calls.ids(undone))
            batch, undone, size, removed = [], set(), 0, set()
            # Measured once the batch before is made: the files that it deleted left room.
            room = free_bytes() - _disk_bytes(change)
            change_size = _record_bytes(change) + _ID_BYTES * len(calls)
        batch.append(change)
        removed |= {change.path} if change.operation == "delete" else set()
        undone |= calls
        size += change_size
    if batch:
        yield UndoBatch(tuple(batch), undone_calls.ids(undone))


def _has_conflict(path: RelPath, removed: Iterable[RelPath]) -> bool:
    """Whether one of the removed paths is this path, above it or below it."""
    depth = len(path.parts)
    return any(each.parts[:depth] == path.parts[: len(each.parts)] for each in removed)


def _disk_bytes(change: Change) -> int:
    """An upper bound of what a change needs on the disk until it is made: the new content and the replaced one."""
    replaced = change.stat_signature[_SIZE_IN_STAMP] if change.stat_signature else 0
    return (0 if change.is_plain_move else change.size + min(replaced, _MAX_STORED_COPY)) + _OVERHEAD_BYTES


def _record_bytes(change: Change) -> int:
    """An upper bound of what a change adds to its record: itself, the replaced modes, the escaped names."""
    own_modes = {str(path): _MAX_MODE for path in change.touched_paths}
    recordable, escaped_members = canonical_json.to_recordable({"change": change.as_record(), "modes": own_modes})
    return len(canonical_json.encode(recordable)) + sum(map(len, escaped_members))
