"""Inverse of recorded changes: the earlier state of each path, unless something else changed it in between.

Also the net effect of several changes, and which changes were undone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kaiza.domain.audit.record import is_well_formed


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
    """How to undo a path's changes: the state they left, and the state to restore."""

    latest: PathState
    target: PathState
    blocked: bool = False
    """Older changes cannot be undone, because something else changed the path after them."""
    moved_with: set[str] = field(default_factory=set)
    """Paths it was moved from or to. They have to be undone together."""


def invert(newest_first: Iterable[Mapping[str, Any]]) -> dict[str, Inverse]:
    """Inverse of the records' changes, by path. Holds one record at a time."""
    inverses: dict[str, Inverse] = {}
    for path, before, after, other_path in _transitions(newest_first):
        inverse = inverses.get(path)
        if inverse is None:
            inverse = inverses[path] = Inverse(after, before)
        elif not inverse.blocked:
            _extend_inverse(inverse, before, after)
        if other_path is not None:
            inverse.moved_with.add(other_path)
    return inverses


def took_effect(record: Mapping[str, Any]) -> bool:
    """Whether the record's changes were made: by a call, by a person, or by a recovery that finished them."""
    if not record.get("changes") or not is_well_formed(record):
        return False
    if record.get("kind") == "recovery":
        return bool((record.get("detail") or {}).get("result") == "applied")
    return record.get("kind") in ("call", "person") and record.get("outcome") == "ok"


def may_be_in_effect(record: Mapping[str, Any]) -> bool:
    """Whether some of the record's changes may be in place: it took effect, or its recovery could not tell."""
    if took_effect(record):
        return True
    detail = record.get("detail")
    result = detail.get("result") if isinstance(detail, Mapping) else None
    is_unclear = record.get("kind") == "recovery" and result == "unknown"
    return is_unclear and bool(record.get("changes")) and is_well_formed(record)


def is_rolled_back(record: Mapping[str, Any]) -> bool:
    """Whether the record is a recovery that left none of the changes in place."""
    detail = record.get("detail")
    result = detail.get("result") if isinstance(detail, Mapping) else None
    return record.get("kind") == "recovery" and result in ("taken_back", "not_applied")


def effective_changes(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Records whose changes are still in effect: not undone, and not themselves an undo."""
    return list(iter_effective(reversed(records)))[::-1]


def iter_effective(newest_first: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The same, newest first, one record at a time."""
    # An undo comes before what it undoes, so one that was itself undone is skipped.
    undone: set[str] = set()
    for record in newest_first:
        if record["request_id"] in undone:
            continue
        if is_undo(record):
            undone.update((record["detail"] or {}).get("undone") or ())
        else:
            yield record


def is_undo(record: Mapping[str, Any]) -> bool:
    """Whether the record is an undo, by an agent or by a person."""
    is_named_undo = record["tool_name"] == "undo_changes" or (record["detail"] or {}).get("action") == "undo"
    return is_named_undo or is_by_person(record)


def is_by_person(record: Mapping[str, Any]) -> bool:
    """Whether a person made the changes. That is always an undo."""
    # The recovery of a person's undo has no session.
    kind = record.get("kind")
    return kind == "person" or (kind == "recovery" and record.get("session_id") is None)


def touched_paths(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield every path that the record's changes altered."""
    for change in record["changes"]:
        yield from filter(None, (change["path"], change["source"]))


def undone_paths(records: Sequence[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Pairs of request id and path that are undone, except where that undo was undone again."""
    undone: set[tuple[str, str]] = set()
    for record in filter(is_undo, reversed(records)):
        effective = [path for path in touched_paths(record) if (record["request_id"], path) not in undone]
        request_ids = (record["detail"] or {}).get("undone") or ()
        undone.update((request_id, path) for request_id in request_ids for path in effective)
    return undone


def paths_restored_by_person(records: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Paths that a person restored, each with the number of the last such record."""
    return {path: record["seq"] for record in records if is_by_person(record) for path in touched_paths(record)}


def _extend_inverse(inverse: Inverse, before: PathState, after: PathState) -> None:
    """Extend an inverse by one older change."""
    if after.is_compatible(inverse.target):
        inverse.target = before
    # Otherwise the change was undone already, or something else changed the path after it.
    elif not before.is_compatible(inverse.target):
        inverse.blocked = True


def _transitions(
    newest_first: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[str, PathState, PathState, str | None]]:
    for record in newest_first:
        modes = (record["detail"] or {}).get("modes", {})
        for change in reversed(record["changes"]):
            yield from _path_transitions(change, modes)


def _path_transitions(
    change: Mapping[str, Any], modes: Mapping[str, int]
) -> Iterator[tuple[str, PathState, PathState, str | None]]:
    """Yield path, state before, state after and the move's other path; a move yields two."""
    path, source = change["path"], change["source"]
    before = PathState(change["before_hash"], modes.get(source or path))
    after = PathState(change["after_hash"], change["mode"], change.get("size"))
    if source is None:
        yield path, before, after, None
    else:
        moved = PathState(after.hash or before.hash, after.mode if after.mode is not None else before.mode, after.size)
        yield path, PathState(None), moved, source
        yield source, before, PathState(None), path


def net_changes(changes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Net effect of changes: one row for each path that differs at the end, sorted. A move is a delete and a create."""
    first: dict[str, str | None] = {}
    last: dict[str, str | None] = {}
    for change in changes:
        for path, before, after in _hash_transitions(change):
            first.setdefault(path, before)
            last[path] = after
    return [_net_row(path, first[path], last[path]) for path in sorted(first) if first[path] != last[path]]


def _hash_transitions(change: Mapping[str, Any]) -> list[tuple[str, str | None, str | None]]:
    if change["source"] is None:
        return [(change["path"], change["before_hash"], change["after_hash"])]
    return [(change["source"], change["before_hash"], None), (change["path"], None, change["after_hash"])]


def _net_row(path: str, before: str | None, after: str | None) -> dict[str, Any]:
    operation = "create" if before is None else "delete" if after is None else "modify"
    hashes = {"before_hash": before, "after_hash": after}
    return {"path": path, "operation": operation, **{name: value for name, value in hashes.items() if value}}
