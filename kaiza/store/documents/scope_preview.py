"""Files that a plan's scope matches now. Walks the workspace; used for review and sealing, not on every call.

Paths that no plan can reach are left out, however broad the patterns: Kaiza's own files, files that may not be read,
and files that steer agents unless the plan unlocks them.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial

from kaiza.domain import errors
from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.nested_names import possible_workspaces
from kaiza.domain.paths.protected_names import is_control_plane, is_unreadable
from kaiza.domain.paths.rel_path import ROOT, RelPath
from kaiza.domain.plans.plan import Plan, Scope
from kaiza.domain.plans.scope import DELETE, MODIFY, MOVE, RequestedOperation, is_allowed, is_unlocked
from kaiza.store.documents.nested_workspaces import is_workspace
from kaiza.store.files import tree_walk
from kaiza.store.files.confined_root import ConfinedRoot

MAX_LISTED = 200
_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ScopePreview:
    """Number of files in scope, and the first MAX_LISTED paths. `stopped_early`: the time was up, there may be more."""

    file_count: int
    listed_paths: tuple[str, ...]
    stopped_early: bool
    operations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Operations that the scope allows, by listed path."""
    match_counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Number of matched files, by operation and pattern."""


def match_files(plan: Plan, root: ConfinedRoot) -> ScopePreview:
    """Match every file of the workspace against the plan's scope, for a few seconds at most."""
    deadline = time.monotonic() + _SECONDS
    patterns = tuple(_scope_patterns(plan.scope))
    match_counts = {(operation, glob.text): 0 for operation, glob in patterns}
    listed: dict[str, tuple[str, ...]] = {}
    count = 0
    with tree_walk.walk(root, ROOT, include_ignored=True, over=lambda: time.monotonic() > deadline, since="") as walk:
        for path, real, operations in _files_in_scope(plan, walk, root):
            count += 1
            if count <= MAX_LISTED:
                listed[path] = operations
            for operation, glob in patterns:
                if operation in operations and glob.matches(real.parts):
                    match_counts[operation, glob.text] += 1
        return ScopePreview(count, tuple(listed), walk.stopped_early, listed, match_counts)


def count_files(plan: Plan, root: ConfinedRoot, over: Callable[[], bool]) -> int | None:
    """Number of files that the scope matches; None if `over` ended the count, or a directory could not be listed."""
    with tree_walk.walk(root, ROOT, include_ignored=True, over=over) as walk:
        count = sum(1 for _ in _files_in_scope(plan, walk, root))
        return None if walk.stopped_early or walk.unlisted_count else count


def has_more_entries(root: ConfinedRoot, most: int) -> bool:
    """Whether the workspace has more files and directories than this. Looks at no more of them, however many."""
    pending, seen = [ROOT], 0
    while pending:
        try:
            opened = root.open_directory(pending.pop(), lambda _real: None)
        except errors.SystemError:
            continue  # it cannot be listed, which `count_files` reports
        with suppress(OSError), opened as directory, os.scandir(directory.fd) as entries:
            for entry in entries:
                if tree_walk.is_skipped(entry.name):
                    continue
                seen += 1
                if seen > most:
                    return True
                if entry.is_dir(follow_symlinks=False):
                    pending.append(directory.real / entry.name)
    return False


def _scope_patterns(scope: Scope) -> Iterator[tuple[str, Glob]]:
    yield from ((MODIFY, glob) for glob in scope.modify)
    yield from ((DELETE, glob) for glob in scope.delete)
    yield from ((MOVE, pair.source) for pair in scope.move)


def _files_in_scope(
    plan: Plan, walk: tree_walk.TreeWalk, root: ConfinedRoot
) -> Iterator[tuple[str, RelPath, tuple[str, ...]]]:
    # Once for each directory: a folder of plans is read whole to answer.
    is_nested = cache(partial(is_workspace, root))
    for entry in walk:
        if entry.type != "file" or any(map(is_nested, possible_workspaces(entry.real))):
            continue
        operations = tuple(_allowed_operations(plan.scope, entry.real))
        if operations and _is_reachable(plan, entry.real):
            yield entry.path, entry.real, operations


def _allowed_operations(scope: Scope, real: RelPath) -> Iterator[str]:
    yield from (operation for operation in (MODIFY, DELETE) if is_allowed(scope, RequestedOperation(operation, real)))
    # A move is matched by its source alone: the destination is not known before a call names it.
    denied = any(glob.matches(real.parts) for glob in scope.deny)
    if not denied and any(pair.source.matches(real.parts) for pair in scope.move):
        yield MOVE


def _is_reachable(plan: Plan, real: RelPath) -> bool:
    return not is_control_plane(real) and not is_unreadable(real) and is_unlocked(plan, real)
