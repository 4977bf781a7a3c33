"""Which changes were undone, by call and path.

An undo names the calls that it undoes, but it may have restored only some of their files, and only some changes of a
file. So a change counts as undone on a path only where the states of the path confirm it.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kaiza.domain.audit.inverse_changes import PathState, is_undo, record_transitions, touched_paths
from kaiza.domain.audit.record import Record


@dataclass(slots=True)
class _OpenUndo:
    """An undo of one path, while the changes that it undid are looked for."""

    calls: Collection[str]
    state: PathState
    """The state of the path after the next older change that it undid."""


@dataclass(slots=True)
class UndoneChanges:
    """Tells of each record which of its paths were undone since. The records come newest first."""

    _open_undos: dict[str, list[_OpenUndo]] = field(default_factory=dict)

    def undone_paths(self, record: Record) -> set[str]:
        """The paths of the next older record that a later undo restored."""
        calls: Collection[str] = frozenset(record.detail.get("undone") or ()) if is_undo(record) else ()
        undone = set()
        for path, before, after, _ in record_transitions(record):
            if self._is_undone(path, record.request_id, before, after, by_undo=bool(calls)):
                undone.add(path)
            elif calls:
                self._open_undos.setdefault(path, []).append(_OpenUndo(calls, before))
        return undone

    def _is_undone(self, path: str, call: str | None, before: PathState, after: PathState, *, by_undo: bool) -> bool:
        open_undos = self._open_undos.get(path, [])
        while open_undos:
            newest = open_undos[-1]
            if call in newest.calls and after.is_compatible(newest.state):
                newest.state = before
                return True
            if by_undo and after.is_compatible(newest.state):  # what it undid is looked for first
                return False
            if before.is_compatible(newest.state):  # undone outside of Kaiza before the undo
                return call in newest.calls
            open_undos.pop()
        return False


def effective_changes(records: Sequence[Record]) -> list[Record]:
    """Records with a change that is still in effect: not undone, and not itself an undo."""
    return list(iter_effective(reversed(records)))[::-1]


def iter_effective(newest_first: Iterable[Record]) -> Iterator[Record]:
    """The same, newest first, one record at a time."""
    undone_changes = UndoneChanges()
    for record in newest_first:
        undone = undone_changes.undone_paths(record)
        if not is_undo(record) and not undone.issuperset(touched_paths(record)):
            yield record


def undone_paths(records: Sequence[Record]) -> set[tuple[str | None, str]]:
    """Pairs of request id and path that are undone, except where that undo was undone again."""
    undone_changes = UndoneChanges()
    return {(record.request_id, path) for record in reversed(records) for path in undone_changes.undone_paths(record)}
