"""Inverse of recorded changes: the earlier state of each path, unless something else changed it in between.

Also what kind of change a record is, and the net effect of several changes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kaiza.domain.audit.record import Record, is_well_formed


class PathState(NamedTuple):
    """Content hash, mode and size of a path as recorded by a change. Hash None: no file."""

    hash: str | None
    mode: int | None = None
    size: int | None = None

    def is_compatible(self, other: "PathState") -> bool:
        """Whether both can describe the same file. An unknown mode matches any."""
        return self.hash == other.hash and (None in (self.mode, other.mode) or self.mode == other.mode)


@dataclass(slots=True)
class Inverse:
    """How to undo a path's selected changes: the state that the newest change left, and the state to restore."""

    latest: PathState
    target: PathState
    """The same as `latest` if nothing of the selected changes is in effect."""
    origin: PathState | None = None
    """The state before the oldest selected change; None if there is none."""
    blocked: bool = False
    """Older selected changes cannot be undone, because something else changed the path after them."""
    other_latest: list[PathState] = field(default_factory=list)
    """What the path may be instead of `latest`, where a recovery could not tell whether a change was made."""
    moved_with: set[str] = field(default_factory=set)
    """Paths it was moved from or to by changes that are undone. They have to be undone together."""
    _is_seeking: bool = False
    """Whether an undo by somebody else brought `target` back: what it undid comes next, and is skipped."""
    _is_closed: bool = False
    """Whether the state to restore is one that somebody else left."""

    @property
    def is_empty(self) -> bool:
        """Whether the selected changes, those that can be undone, left the path as it was."""
        # An unknown mode may differ: a private file that was deleted and created again is no longer private.
        is_same_mode = self.target.mode is None or self.latest.mode == self.target.mode
        return self.latest.hash == self.target.hash and is_same_mode

    def extend(self, step: "_Transition") -> None:
        """Take in the next older change of the path."""
        if step.is_selected:
            self.origin = step.before
        if self._is_closed:
            self.blocked |= step.is_selected
            return
        if self._is_seeking and not step.after.is_compatible(self.target):
            # Just before this change the path was in this state, for the last time before the undo.
            self._is_seeking = not step.before.is_compatible(self.target)
            return
        self._is_seeking = False
        if step.after.is_compatible(self.target):
            self._follow(step)
        # Otherwise the change was undone outside of Kaiza, or something else changed the path after it.
        elif not step.before.is_compatible(self.target) and step.is_certain:
            self._is_closed, self.blocked = True, step.is_selected

    def _follow(self, step: "_Transition") -> None:
        """Go back over a change that left the state to restore."""
        if step.is_selected:
            if not step.is_certain and self.is_empty:
                self.other_latest.append(step.before)
            self.target = step.before
            if step.other_path is not None:
                self.moved_with.add(step.other_path)
        else:
            self._is_seeking, self._is_closed = step.is_undo, not step.is_undo


class _Transition(NamedTuple):
    """What one record did to one path."""

    path: str
    before: PathState
    after: PathState
    other_path: str | None
    is_selected: bool
    is_undo: bool
    is_certain: bool


def invert(
    newest_first: Iterable[Record],
    is_selected: Callable[[Record], bool] = lambda _record: True,
) -> dict[str, Inverse]:
    """Inverse of the selected changes, by path. Holds one record at a time.

    `newest_first` has every record that took effect, so that it is known who left each state of a path. An undo by
    somebody else is not a change: it restores an earlier state. The contents tell which one. The calls that it names
    do not, since it may have restored only some of their files.
    """
    inverses: dict[str, Inverse] = {}
    for record in newest_first:
        selected, undo = is_selected(record), is_undo(record)
        certain = record.kind != "recovery" or took_effect(record)
        for path, before, after, other_path in record_transitions(record):
            step = _Transition(path, before, after, other_path, selected, undo, certain)
            inverse = inverses.get(path)
            if inverse is None:
                inverse = inverses[path] = Inverse(after, after)
            inverse.extend(step)
    return {path: inverse for path, inverse in inverses.items() if inverse.origin is not None}


def took_effect(record: Record) -> bool:
    """Whether the record's changes were made: by a call, by a person, or by a recovery that finished them."""
    if not record.changes or not is_well_formed(record):
        return False
    if record.kind == "recovery":
        return record.detail.get("result") == "applied"
    return record.kind in ("call", "person") and record.outcome == "ok"


def may_be_in_effect(record: Record) -> bool:
    """Whether some of the record's changes may be in place: it took effect, or its recovery could not tell."""
    if took_effect(record):
        return True
    is_unclear = record.kind == "recovery" and record.detail.get("result") == "unknown"
    return is_unclear and bool(record.changes) and is_well_formed(record)


def is_rolled_back(record: Record) -> bool:
    """Whether the record is a recovery that left none of the changes in place."""
    return record.kind == "recovery" and record.detail.get("result") in ("taken_back", "not_applied")


def is_undo(record: Record) -> bool:
    """Whether the record is an undo, by an agent or by a person."""
    is_named_undo = record.tool_name == "undo_changes" or record.detail.get("action") == "undo"
    return is_named_undo or is_by_person(record)


def is_by_person(record: Record) -> bool:
    """Whether a person made the changes. That is always an undo."""
    # The recovery of a person's undo has no session.
    return record.kind == "person" or (record.kind == "recovery" and record.session_id is None)


def touched_paths(record: Record) -> Iterator[str]:
    """Yield every path that the record's changes altered."""
    for change in record.changes:
        yield from filter(None, (change["path"], change["source"]))


def paths_restored_by_person(records: Sequence[Record]) -> dict[str, int]:
    """Paths that a person restored, each with the number of the last such record."""
    return {path: record.seq for record in records if is_by_person(record) for path in touched_paths(record)}


def record_transitions(record: Record) -> Iterator[tuple[str, PathState, PathState, str | None]]:
    """Yield path, state before, state after and the move's other path, the last change first; a move yields two."""
    modes = record.detail.get("modes") or {}
    # An undo also restores modes that its record does not name.
    is_mode_kept = not is_undo(record)
    for change in reversed(record.changes):
        yield from _path_transitions(change, modes, is_mode_kept=is_mode_kept)


def _path_transitions(
    change: Mapping[str, Any], modes: Mapping[str, int], *, is_mode_kept: bool
) -> Iterator[tuple[str, PathState, PathState, str | None]]:
    path, source = change["path"], change["source"]
    before = PathState(change["before_hash"], modes.get(source or path))
    mode = before.mode if change["mode"] is None and is_mode_kept else change["mode"]
    digest = change["after_hash"]
    if source is None:
        yield path, before, PathState(digest, None if digest is None else mode, change.get("size")), None
    else:
        mode = before.mode if mode is None else mode
        yield path, PathState(None), PathState(digest or before.hash, mode, change.get("size")), source
        yield source, before, PathState(None), path


def net_changes(changes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Net effect of changes: one row for each path that differs at the end, sorted. A move is a delete and a create."""
    first: dict[str, str | None] = {}
    last: dict[str, str | None] = {}
    for change in changes:
        path, source, before, after = (change[name] for name in ("path", "source", "before_hash", "after_hash"))
        steps = [(path, before, after)] if source is None else [(source, before, None), (path, None, after)]
        for name, old, new in steps:
            first.setdefault(name, old)
            last[name] = new
    rows = []
    for path in sorted(path for path in first if first[path] != last[path]):
        before, after = first[path], last[path]
        operation = "create" if before is None else "delete" if after is None else "modify"
        hashes = {"before_hash": before, "after_hash": after}
        rows.append({"path": path, "operation": operation, **{name: value for name, value in hashes.items() if value}})
    return rows
