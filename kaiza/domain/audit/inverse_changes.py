"""Where recorded changes lead back to: what each path was before them, as far as nothing else came between."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class PathState(NamedTuple):
    """What a path is, as far as a change tells: no hash means that nothing is there."""

    hash: str | None
    mode: int | None = None

    def is_compatible(self, other: "PathState") -> bool:
        """Whether the two do not contradict each other; a mode that nobody told says nothing."""
        return self.hash == other.hash and (None in (self.mode, other.mode) or self.mode == other.mode)


@dataclass(slots=True)
class Inverse:
    """One path's way back: how the changes left it, and what it was before the oldest that can be reached."""

    latest: PathState
    target: PathState
    blocked: bool = False
    """Whether older changes are out of reach, because something else changed the path between them."""
    moved_with: set[str] = field(default_factory=set)
    """The paths it was moved from or to: both go back, or none."""


def invert(records: Iterable[Mapping[str, Any]]) -> dict[str, Inverse]:
    """The way back of every path that the records' changes touched, the newest first."""
    found: dict[str, Inverse] = {}
    for path, was, became, other in _transitions_newest_first(records):
        way = found.get(path)
        if way is None:
            way = found[path] = Inverse(became, was)
        elif not way.blocked:
            _extend_inverse(way, was, became)
        if other is not None:
            way.moved_with.add(other)
    return found


def took_effect(record: Mapping[str, Any]) -> bool:
    """Whether a record tells of changes that were made: by a call, by a person, or finished after a crash."""
    if not record.get("changes"):
        return False
    if record.get("kind") == "recovery":
        return bool((record.get("detail") or {}).get("result") == "applied")
    return record.get("kind") in ("call", "person") and record.get("outcome") == "ok"


def is_rolled_back(record: Mapping[str, Any]) -> bool:
    """Whether a record tells of a recovery after which nothing of the changes was left."""
    result = (record.get("detail") or {}).get("result")
    return record.get("kind") == "recovery" and result in {"taken_back", "not_applied"}


def effective_changes(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The changes that stand: no undo, and nothing that an undo put back which stands itself."""
    undone: set[str] = set()
    for record in reversed(records):
        if is_undo(record) and record["request_id"] not in undone:
            undone.update((record["detail"] or {}).get("undone", ()))
    return [record for record in records if not is_undo(record) and record["request_id"] not in undone]


def is_undo(record: Mapping[str, Any]) -> bool:
    """Whether a record tells of changes that were put back, by an agent or by a person."""
    named = record["tool_name"] == "undo_changes" or (record["detail"] or {}).get("action") == "undo"
    return named or is_by_person(record)


def is_by_person(record: Mapping[str, Any]) -> bool:
    """Whether a person made a record's changes, which is always an undo; one that a crash cut off has no session."""
    kind = record.get("kind")
    return kind == "person" or (kind == "recovery" and record.get("session_id") is None)


def touched_paths(record: Mapping[str, Any]) -> Iterator[str]:
    """Every path that a record's changes altered."""
    for change in record["changes"]:
        yield from filter(None, (change["path"], change["source"]))


def undone_paths(records: Sequence[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Each call with each of its paths that an undo put back, unless that undo was put back there itself."""
    undone: set[tuple[str, str]] = set()
    for record in filter(is_undo, reversed(records)):
        effective = [path for path in touched_paths(record) if (record["request_id"], path) not in undone]
        undone.update((name, path) for name in (record["detail"] or {}).get("undone", ()) for path in effective)
    return undone


def paths_restored_by_person(records: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The paths that a person put back, each with the number of the last record that says so."""
    return {path: record["seq"] for record in records if is_by_person(record) for path in touched_paths(record)}


def _extend_inverse(way: Inverse, was: PathState, became: PathState) -> None:
    """One older step: it leads on from where we are, it was put back already, or something else came between."""
    if became.is_compatible(way.target):
        way.target = was
    elif not was.is_compatible(way.target):
        way.blocked = True


def _transitions_newest_first(
    records: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[str, PathState, PathState, str | None]]:
    for record in reversed(list(records)):
        modes = (record["detail"] or {}).get("modes", {})
        for change in reversed(record["changes"]):
            yield from _path_transitions(change, modes)


def _path_transitions(
    change: Mapping[str, Any], modes: Mapping[str, int]
) -> Iterator[tuple[str, PathState, PathState, str | None]]:
    """What every path was and became; a move is two steps."""
    path, source = change["path"], change["source"]
    was = PathState(change["before_hash"], modes.get(source or path))
    became = PathState(change["after_hash"], change["mode"])
    if source is None:
        yield path, was, became, None
    else:
        moved = PathState(became.hash or was.hash, became.mode if became.mode is not None else was.mode)
        yield path, PathState(None), moved, source
        yield source, was, PathState(None), path


def net_changes(changes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row a path that ended up other than it began, in order of path; a move is a delete and a create."""
    before: dict[str, str | None] = {}
    after: dict[str, str | None] = {}
    for change in changes:
        for path, was, became in _hash_transitions(change):
            before.setdefault(path, was)
            after[path] = became
    return [_net_row(path, before[path], after[path]) for path in sorted(before) if before[path] != after[path]]


def _hash_transitions(change: Mapping[str, Any]) -> list[tuple[str, str | None, str | None]]:
    if change["source"] is None:
        return [(change["path"], change["before_hash"], change["after_hash"])]
    return [(change["source"], change["before_hash"], None), (change["path"], None, change["after_hash"])]


def _net_row(path: str, before: str | None, after: str | None) -> dict[str, Any]:
    operation = "create" if before is None else "delete" if after is None else "modify"
    hashes = {"before_hash": before, "after_hash": after}
    return {"path": path, "operation": operation, **{name: value for name, value in hashes.items() if value}}
