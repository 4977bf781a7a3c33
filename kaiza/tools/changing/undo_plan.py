"""What leads files back over recorded changes, held against what is there now; what would lose something is kept."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kaiza.domain import errors
from kaiza.domain.audit.inverse_changes import Inverse, PathState, invert
from kaiza.domain.change import Change, OperationKind
from kaiza.domain.paths import protected_names, rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.tools.changing import target_file as target
from kaiza.tools.changing.target_file import TargetFile
from kaiza.tools.view import PreImagesView

CHANGED_SINCE, NOT_KEPT, PROTECTED, MOVED_TOGETHER = "changed_since", "not_kept", "protected", "moved_together"
TAKEN_BACK, OTHER_PLAN = "taken_back", "other_plan"
_NO_PATHS: Mapping[str, str] = MappingProxyType({})
_NOT_REGULAR_FILE = frozenset({"INVALID_PATH", "FILE_WRITE_FAILED", "FILE_READ_FAILED", "OUTSIDE_WORKSPACE"})


@dataclass(frozen=True, slots=True)
class PathRestoration:
    """One path on its way: what is there now, and what is to be there."""

    path: RelPath
    current: TargetFile | None
    target: PathState

    @property
    def is_deletion(self) -> bool:
        """Whether nothing will be there."""
        return self.target.hash is None


@dataclass(slots=True)
class UndoDraft:
    """What is to be done so far, and what stays as it is."""

    restorations: dict[str, PathRestoration] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def skip(self, path: str, reason: str) -> None:
        """Leave a path as it is; the first reason is the one that is told."""
        self.skipped.setdefault(path, reason)
        self.restorations.pop(path, None)


def undo_changes_for(
    records: Iterable[Mapping[str, Any]], view: PreImagesView, barred: Mapping[str, str] = _NO_PATHS
) -> tuple[list[Change], list[dict[str, str]]]:
    """One change a path that leads back, newest first; and the paths that are kept, because something would be lost.

    `barred`: paths that are kept in any case, each with its reason.
    """
    sketch = UndoDraft()
    found = invert(records)
    for path, way in found.items():
        _examine_path(path, way, sketch, view, barred.get(path))
    _skip_move_partners(found, sketch)
    changes = list(_build_changes(sketch, view))
    _skip_move_partners(found, sketch)
    order = {path: number for number, path in enumerate(found)}
    changes = [change for change in changes if not any(str(path) in sketch.skipped for path in change.touched_paths)]
    changes.sort(key=lambda change: order[str(change.path)])
    for path, way in found.items():
        if way.blocked:
            sketch.skipped.setdefault(path, CHANGED_SINCE)
    return changes, [{"path": path, "reason": reason} for path, reason in sketch.skipped.items()]


def _examine_path(path: str, way: Inverse, sketch: UndoDraft, view: PreImagesView, reason: str | None) -> None:
    """Decide about one path from what stands there; with a reason, it is kept unless it is as it should be."""
    where = rel_path.parse(path)
    if protected_names.is_control_plane(where) or view.is_unreadable(where):
        sketch.skip(path, PROTECTED)
        return
    try:
        found = target.read_target(where, view)
    except errors.SystemError as error:
        if error.error_code not in _NOT_REGULAR_FILE:
            raise
        sketch.skip(path, CHANGED_SINCE)
        return
    now = PathState(found.hash, found.mode) if found else PathState(None)
    if now.is_compatible(way.target):
        return
    if reason is None and now.is_compatible(way.latest):
        sketch.restorations[path] = PathRestoration(where, found, way.target)
    else:
        sketch.skip(path, reason or CHANGED_SINCE)


def _skip_move_partners(found: Mapping[str, Inverse], sketch: UndoDraft) -> None:
    """A file that was moved goes back on both sides, or on none."""
    waiting = list(sketch.skipped)
    while waiting:
        for path in found[waiting.pop()].moved_with & sketch.restorations.keys():
            sketch.skip(path, MOVED_TOGETHER)
            waiting.append(path)


def _build_changes(sketch: UndoDraft, view: PreImagesView) -> Iterator[Change]:
    """The changes; a content that is kept nowhere else is taken from where it was moved to."""
    holders = {
        move.current.hash: move
        for move in sketch.restorations.values()
        if move.is_deletion and move.current is not None
    }
    moved: set[RelPath] = set()
    for path, move in list(sketch.restorations.items()):
        if path not in sketch.restorations or move.is_deletion or move.target.hash is None:
            continue
        size = view.stored_size(move.target.hash)
        holder = holders.get(move.target.hash)
        if holder is not None and holder.path not in moved and move.current is None:
            moved.add(holder.path)
            yield _move_back(move, holder)
        elif size is not None:
            yield _restore_content(move, size)
        else:
            sketch.skip(path, NOT_KEPT)
    for move in list(sketch.restorations.values()):
        if move.is_deletion and move.path not in moved and move.current is not None:
            yield Change(move.path, "delete", before_hash=move.current.hash, stat_signature=move.current.stamp)


def _move_back(move: PathRestoration, holder: PathRestoration) -> Change:
    assert holder.current is not None  # noqa: S101  a holder is what stands there
    digest = holder.current.hash
    mode = move.target.mode if move.target.mode != holder.current.mode else None
    return Change(move.path, "move", digest, digest, holder.current.size, mode=mode, source=holder.path)


def _restore_content(move: PathRestoration, size: int) -> Change:
    operation: OperationKind = "create" if move.current is None else "modify"
    before = move.current.hash if move.current else None
    return Change(move.path, operation, before, move.target.hash, size, mode=move.target.mode)
