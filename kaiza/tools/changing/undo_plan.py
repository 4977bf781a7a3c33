"""Computes the changes that undo recorded ones. A path is skipped if restoring it would lose other changes."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from kaiza.domain import errors
from kaiza.domain.audit.inverse_changes import Inverse, PathState
from kaiza.domain.change import Change
from kaiza.domain.paths import protected_names, rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.tools.changing import target_file
from kaiza.tools.changing.target_file import TargetFile
from kaiza.tools.view import WorkspaceView

CHANGED_SINCE, NOT_KEPT, PROTECTED, MOVED_TOGETHER = "changed_since", "not_kept", "protected", "moved_together"
TAKEN_BACK, OTHER_PLAN, DIRECTORY_IN_PLACE = "taken_back", "other_plan", "directory_in_place"
"""Reasons why a path is skipped, as they are on the wire."""
_NO_PATHS: Mapping[str, str] = MappingProxyType({})
_LEAST_CHANGE_BYTES = 190
"""Bytes of the shortest change in a record, without its path."""
_QUOTES = len('"",')
_WRITE_BITS = 0o222
_NOT_REGULAR_FILE = frozenset({"INVALID_PATH", "FILE_WRITE_FAILED", "FILE_READ_FAILED", "OUTSIDE_WORKSPACE"})


@dataclass(frozen=True, slots=True)
class PathRestoration:
    """One path to restore: its current file and its earlier state."""

    path: RelPath
    current: TargetFile | None
    target: PathState

    @property
    def is_deletion(self) -> bool:
        """Whether there was no file before."""
        return self.target.hash is None


@dataclass(slots=True)
class UndoDraft:
    """Paths to restore and paths to skip, while both are being decided."""

    known: Collection[str] = ()
    """Every path of the undo."""
    made_directories: Collection[str] | None = None
    """Directories that may be removed to make room; None if nothing may be."""
    restorations: dict[str, PathRestoration] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    """Paths with older changes that cannot be undone, each with the reason, whether newer ones are or not."""
    obstacles: dict[str, frozenset[str]] = field(default_factory=dict)
    """Paths whose place is taken, each with the files that have to be deleted before it can be restored."""

    def skip(self, path: str, reason: str) -> None:
        """Leave a path as it is. The first reason is the one that is reported."""
        self.skipped.setdefault(path, reason)
        self.restorations.pop(path, None)

    def is_obstructed(self, path: str) -> bool:
        """Whether a file that is in the way of a restoration will not be deleted, or will be restored itself."""
        if self._is_deleted(path) or path not in self.restorations:
            return False
        parts = self.restorations[path].path.parts
        above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        return not all(map(self._is_deleted, self.obstacles.get(path, ()))) or any(
            each in self.restorations and not self._is_deleted(each) for each in above
        )

    def _is_deleted(self, path: str) -> bool:
        return path in self.restorations and self.restorations[path].is_deletion

    @property
    def first(self) -> frozenset[str]:
        """Files that have to be deleted before other paths can be restored."""
        return frozenset().union(*(each for path, each in self.obstacles.items() if path in self.restorations))


def require_room(
    inverses: Mapping[str, Inverse], undone: Iterable[str], view: WorkspaceView, excluded: Mapping[str, str]
) -> None:
    """CAP_EXCEEDED if the undo cannot fit into one record. Reads no content, and stats no more files than would fit.

    The estimate is too low rather than too high: a file's creation and another's deletion may become one move.
    """
    used, restored, deleted = sum(len(request_id) + _QUOTES for request_id in undone), 0, 0
    for path, inverse in inverses.items():
        if path in excluded or not _may_change(path, inverse, view):
            continue
        used += len(path)
        deleted, restored = deleted + (inverse.target.hash is None), restored + (inverse.target.hash is not None)
        size = used + max(restored, deleted) * _LEAST_CHANGE_BYTES
        if size > view.caps.record_bytes:
            raise errors.SystemError.tool_failure(
                "CAP_EXCEEDED",
                human_message=(
                    "This undo changes too many files for one record. Pass some of the request_ids at a time, "
                    "or ask a person to run kaiza undo."
                ),
                cause={"cap": "record_bytes", "limit": view.caps.record_bytes, "size": size},
            )


def _may_change(path: str, inverse: Inverse, view: WorkspaceView) -> bool:
    """Whether the undo may change this path, as far as the size of the file tells."""
    parsed = _parse_or_none(path)
    if parsed is None or inverse.is_empty:
        return False
    try:
        size = view.stat(parsed).size
    except errors.SystemError:
        return inverse.latest.hash is None
    return inverse.latest.hash is not None and inverse.latest.size in {None, size}


def undo_changes_for(
    inverses: Mapping[str, Inverse],
    view: WorkspaceView,
    excluded: Mapping[str, str] = _NO_PATHS,
    made_directories: Collection[str] | None = None,
) -> tuple[list[Change], list[dict[str, str]]]:
    """Return the changes that restore these paths, newest first, and the skipped paths with their reasons.

    `excluded`: paths to skip in any case, each with its reason. `made_directories`: those that Kaiza made; with them,
    deletions that make room for other paths come first, and have to be made before these.
    """
    draft = UndoDraft(inverses.keys(), made_directories)
    for path, inverse in inverses.items():
        if not inverse.is_empty or inverse.blocked:
            _examine_path(path, inverse, draft, view, excluded.get(path))
    contents = _skip_unrestorable(inverses, draft, view)
    order = {path: number for number, path in enumerate(inverses)}
    first = draft.first
    changes = sorted(
        _build_changes(draft, contents), key=lambda change: (str(change.path) not in first, order[str(change.path)])
    )
    kept = {**draft.remarks, **draft.skipped}
    return changes, [{"path": path, "reason": reason} for path, reason in kept.items()]


def _examine_path(path: str, inverse: Inverse, draft: UndoDraft, view: WorkspaceView, reason: str | None) -> None:
    """Restore or skip one path by its current state; with a reason, skip it unless there is nothing to restore."""
    parsed = _parse_or_none(path)
    # Judged now and not by the record: a path may have become protected since it was changed.
    if parsed is None or protected_names.is_control_plane(parsed) or view.is_unreadable(parsed):
        draft.skip(path, PROTECTED)
        return
    try:
        current = target_file.read_target(parsed, view)
    except errors.SystemError as error:
        if error.error_code not in _NOT_REGULAR_FILE:
            raise
        made = draft.made_directories
        obstacles = None if made is None else find_obstacles(parsed, view, draft.known, made)
        if obstacles is None:
            is_directory = isinstance(error.cause, Mapping) and error.cause.get("why") == "directory"
            draft.skip(path, DIRECTORY_IN_PLACE if made is not None and is_directory else CHANGED_SINCE)
            return
        current, draft.obstacles[path] = None, obstacles
    _decide_path(PathRestoration(parsed, current, inverse.target), inverse, draft, reason)


def _decide_path(found: PathRestoration, inverse: Inverse, draft: UndoDraft, reason: str | None) -> None:
    """Restore or skip a path that can be read, or leave it out because there is nothing to restore."""
    path, current = str(found.path), found.current
    state = PathState(current.hash, current.mode) if current else PathState(None)
    is_as_left = any(state.is_compatible(known) for known in (inverse.latest, *inverse.other_latest))
    if inverse.latest.mode is None and state.mode is not None:
        # A new file's mode is not recorded, but Kaiza creates none that is read-only.
        is_as_left = is_as_left and bool(state.mode & _WRITE_BITS)
    may_restore = reason is None and is_as_left
    if not inverse.is_empty and not state.is_compatible(inverse.target):
        if may_restore:
            draft.restorations[path] = found
        elif inverse.origin is not None and not state.is_compatible(inverse.origin):
            draft.skip(path, reason or CHANGED_SINCE)
    after = inverse.target if may_restore else state
    if inverse.blocked and inverse.origin is not None and not after.is_compatible(inverse.origin):
        draft.remarks[path] = reason or CHANGED_SINCE


def find_obstacles(
    path: RelPath, view: WorkspaceView, known: Collection[str], made: Collection[str]
) -> frozenset[str] | None:
    """Files that have to be deleted before a file can be created at this path; None if more is in the way.

    `known`: paths that the undo may delete. `made`: directories that Kaiza made; no other one is ever removed.
    """
    try:
        for depth in range(1, len(path.parts) + 1):
            place = RelPath(path.parts[:depth])
            with view.open_directory(place.parent) as directory:
                entry = directory.stat_entry(place.name)
            if entry is None:
                return frozenset()
            if entry.type == "file" and place != path and str(place) in known:
                return frozenset({str(place)})
            if entry.type != "directory":
                return None
        return _list_files(path, view, known, made)
    except errors.SystemError:  # a directory that must not be read, or is gone again
        return None


def _list_files(
    path: RelPath, view: WorkspaceView, known: Collection[str], made: Collection[str]
) -> frozenset[str] | None:
    """The files below a directory; None if something there is neither a known file nor a directory Kaiza made."""
    found: set[str] = set()
    pending = [path]
    while pending:
        place = pending.pop()
        if str(place) not in made:
            return None
        with view.open_directory(place) as directory:
            for name in directory.names(most=len(known) + len(made) + 1):
                entry, child = directory.stat_entry(name), place / name
                if entry is not None and entry.type == "directory":
                    pending.append(child)
                elif entry is not None and entry.type == "file" and str(child) in known:
                    found.add(str(child))
                else:
                    return None
    return frozenset(found)


def _parse_or_none(path: str) -> RelPath | None:
    """The path; None if no change could have had it, as in a log that came with a clone."""
    try:
        return rel_path.parse(path)
    except errors.SystemError:
        return None


def _skip_unrestorable(inverses: Mapping[str, Inverse], draft: UndoDraft, view: WorkspaceView) -> Mapping[str, int]:
    """Skip what cannot be restored, and what depends on it. Returns the sizes of the contents to restore, by hash."""
    stored: dict[str, int | None] = {}
    while True:
        _skip_move_partners(inverses, draft)
        # Only a path that is changed too is a source of its content: the transaction checks and locks it.
        held = {
            each.current.hash: each.current.size for each in draft.restorations.values() if each.current is not None
        }
        wanted = {path: each.target.hash for path, each in draft.restorations.items() if each.target.hash is not None}
        for digest in wanted.values():
            if digest not in held and digest not in stored:
                stored[digest] = _stored_size(digest, view)
        missing = [path for path, digest in wanted.items() if digest not in held and stored[digest] is None]
        obstructed = [path for path in draft.restorations if draft.is_obstructed(path)]
        if not missing and not obstructed:
            return {**{digest: size for digest, size in stored.items() if size is not None}, **held}
        for path in missing:
            draft.skip(path, NOT_KEPT)
        for path in obstructed:
            draft.skip(path, CHANGED_SINCE if draft.made_directories is None else DIRECTORY_IN_PLACE)


def _stored_size(digest: str, view: WorkspaceView) -> int | None:
    """Size of a stored content; None if it is missing or damaged."""
    try:
        return view.stored_size(digest)
    except errors.SystemError as error:
        if error.error_code != "FILE_READ_FAILED":
            raise
        return None


def _skip_move_partners(inverses: Mapping[str, Inverse], draft: UndoDraft) -> None:
    """Skip both sides of a move if one is skipped: restoring one alone would copy or lose the file."""
    pending = list(draft.skipped)
    visited = set(pending)
    while pending:
        for path in inverses[pending.pop()].moved_with - visited:
            visited.add(path)
            if path in draft.restorations:
                draft.skip(path, MOVED_TOGETHER)
                pending.append(path)
            elif inverses[path].is_empty:  # a name that the file only passed through
                pending.append(path)


def _build_changes(draft: UndoDraft, sizes: Mapping[str, int]) -> Iterator[Change]:
    """The changes that make the restorations.

    A file that was moved is moved back, if its old name is free and its new one is to be. Where names were exchanged,
    the contents are written anew: they are in the blob store, or in the files that the same transaction changes.
    """
    first = draft.first  # deleted before anything is restored, so never moved back
    leaving = {
        each.current.hash: each.current
        for path, each in draft.restorations.items()
        if each.is_deletion and each.current and path not in first
    }
    moved: set[RelPath] = set()
    for restoration in draft.restorations.values():
        path, current, target = restoration.path, restoration.current, restoration.target
        if target.hash is None:
            continue
        holder = leaving.get(target.hash)
        if current is not None:
            stamp, size = current.stamp, sizes[target.hash]
            yield Change(path, "modify", current.hash, target.hash, size, mode=target.mode, stat_signature=stamp)
        elif holder is None or holder.path in moved:
            yield Change(path, "create", None, target.hash, sizes[target.hash], mode=target.mode)
        else:
            moved.add(holder.path)
            size, stamp = holder.size, holder.stamp
            mode = target.mode if target.mode != holder.mode else None
            source = holder.path
            yield Change(path, "move", target.hash, target.hash, size, mode=mode, source=source, stat_signature=stamp)
    for restoration in draft.restorations.values():
        current = restoration.current
        if restoration.is_deletion and restoration.path not in moved and current is not None:
            yield Change(restoration.path, "delete", before_hash=current.hash, stat_signature=current.stamp)
