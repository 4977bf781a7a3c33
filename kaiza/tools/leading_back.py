"""What leads files back over recorded changes, held against what is there now; what would lose something is kept."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kaiza.domain import errors, paths, protected_names
from kaiza.domain.change import Change, Operation
from kaiza.domain.paths import RelPath
from kaiza.domain.way_back import State, Way, ways
from kaiza.tools import target
from kaiza.tools.target import Standing
from kaiza.tools.view import PreImagesView

CHANGED_SINCE, NOT_KEPT, PROTECTED, MOVED_TOGETHER = "changed_since", "not_kept", "protected", "moved_together"
TAKEN_BACK, OTHER_PLAN = "taken_back", "other_plan"
_NOTHING: Mapping[str, str] = MappingProxyType({})
_NO_PLAIN_FILE = frozenset({"INVALID_PATH", "FILE_WRITE_FAILED", "FILE_READ_FAILED", "OUTSIDE_WORKSPACE"})


@dataclass(frozen=True, slots=True)
class Return:
    """One path on its way: what is there now, and what is to be there."""

    path: RelPath
    now: Standing | None
    target: State

    @property
    def goes(self) -> bool:
        """Whether nothing will be there."""
        return self.target.hash is None


@dataclass(slots=True)
class Sketch:
    """What is to be done so far, and what stays as it is."""

    returns: dict[str, Return] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)

    def keep(self, path: str, reason: str) -> None:
        """Leave a path as it is; the first reason is the one that is told."""
        self.kept.setdefault(path, reason)
        self.returns.pop(path, None)


def worked_out(
    records: Iterable[Mapping[str, Any]], view: PreImagesView, barred: Mapping[str, str] = _NOTHING
) -> tuple[list[Change], list[dict[str, str]]]:
    """One change a path that leads back, newest first; and the paths that are kept, because something would be lost.

    `barred`: paths that are kept in any case, each with its reason.
    """
    sketch = Sketch()
    found = ways(records)
    for path, way in found.items():
        _look(path, way, sketch, view, barred.get(path))
    _keep_together(found, sketch)
    changes = list(_changes(sketch, view))
    _keep_together(found, sketch)
    order = {path: number for number, path in enumerate(found)}
    changes = [change for change in changes if not any(str(path) in sketch.kept for path in change.touched)]
    changes.sort(key=lambda change: order[str(change.path)])
    for path, way in found.items():
        if way.blocked:
            sketch.kept.setdefault(path, CHANGED_SINCE)
    return changes, [{"path": path, "reason": reason} for path, reason in sketch.kept.items()]


def _look(path: str, way: Way, sketch: Sketch, view: PreImagesView, reason: str | None) -> None:
    """Decide about one path from what stands there; with a reason, it is kept unless it is as it should be."""
    where = paths.parse(path)
    if protected_names.is_control_plane(where) or view.unreadable(where):
        sketch.keep(path, PROTECTED)
        return
    try:
        found = target.standing(where, view)
    except errors.SystemError as error:
        if error.error_code not in _NO_PLAIN_FILE:
            raise
        sketch.keep(path, CHANGED_SINCE)
        return
    now = State(found.hash, found.mode) if found else State(None)
    if now.could_be(way.target):
        return
    if reason is None and now.could_be(way.left):
        sketch.returns[path] = Return(where, found, way.target)
    else:
        sketch.keep(path, reason or CHANGED_SINCE)


def _keep_together(found: Mapping[str, Way], sketch: Sketch) -> None:
    """A file that was moved goes back on both sides, or on none."""
    waiting = list(sketch.kept)
    while waiting:
        for path in found[waiting.pop()].together & sketch.returns.keys():
            sketch.keep(path, MOVED_TOGETHER)
            waiting.append(path)


def _changes(sketch: Sketch, view: PreImagesView) -> Iterator[Change]:
    """The changes; a content that is kept nowhere else is taken from where it was moved to."""
    holders = {move.now.hash: move for move in sketch.returns.values() if move.goes and move.now is not None}
    moved: set[RelPath] = set()
    for path, move in list(sketch.returns.items()):
        if path not in sketch.returns or move.goes or move.target.hash is None:
            continue
        size = view.kept(move.target.hash)
        holder = holders.get(move.target.hash)
        if holder is not None and holder.path not in moved and move.now is None:
            moved.add(holder.path)
            yield _moved(move, holder)
        elif size is not None:
            yield _put(move, size)
        else:
            sketch.keep(path, NOT_KEPT)
    for move in list(sketch.returns.values()):
        if move.goes and move.path not in moved and move.now is not None:
            yield Change(move.path, "delete", before_hash=move.now.hash, seen_as=move.now.stamp)


def _moved(move: Return, holder: Return) -> Change:
    assert holder.now is not None  # noqa: S101  a holder is what stands there
    digest = holder.now.hash
    mode = move.target.mode if move.target.mode != holder.now.mode else None
    return Change(move.path, "move", digest, digest, holder.now.size, mode=mode, source=holder.path)


def _put(move: Return, size: int) -> Change:
    operation: Operation = "create" if move.now is None else "modify"
    before = move.now.hash if move.now else None
    return Change(move.path, operation, before, move.target.hash, size, mode=move.target.mode)
