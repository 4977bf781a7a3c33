"""What a plan's scope touches in the workspace as it is now; counted when it is shown or sealed, not on every call.

What no plan reaches is not counted, however broad its patterns: the control plane, what may not be read, and what
steers agents unless the plan unlocks it.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.protected_names import is_control_plane, is_unreadable
from kaiza.domain.paths.rel_path import ROOT, RelPath
from kaiza.domain.plans.plan import Plan, Scope
from kaiza.domain.plans.scope import DELETE, MODIFY, MOVE, RequestedOperation, is_allowed, is_unlocked
from kaiza.store.files import tree_walk
from kaiza.store.files.confined_root import ConfinedRoot

MAX_LISTED = 200


@dataclass(frozen=True, slots=True)
class ScopePreview:
    """How many files are in scope; the first of them by name, and whether the count was broken off."""

    file_count: int
    listed_paths: tuple[str, ...]
    stopped_early: bool
    operations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What may happen to each of those that are named."""
    match_counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How many of the files each pattern matches, by operation and pattern."""


def match_files(plan: Plan, workspace: ConfinedRoot, *, seconds: float = 5.0) -> ScopePreview:
    """Look at every file once, for at most so long."""
    until = time.monotonic() + seconds
    patterns = tuple(_scope_patterns(plan.scope))
    matched = {(operation, glob.text): 0 for operation, glob in patterns}
    named: dict[str, tuple[str, ...]] = {}
    files = 0
    with tree_walk.walk(workspace, ROOT, include_ignored=True, over=lambda: time.monotonic() > until, since="") as walk:
        for path, real, operations in _files_in_scope(plan, walk):
            files += 1
            if files <= MAX_LISTED:
                named[path] = operations
            for operation, glob in patterns:
                if operation in operations and glob.matches(real.parts):
                    matched[operation, glob.text] += 1
        return ScopePreview(files, tuple(named), walk.stopped_early, named, matched)


def _scope_patterns(scope: Scope) -> Iterator[tuple[str, Glob]]:
    yield from ((MODIFY, glob) for glob in scope.modify)
    yield from ((DELETE, glob) for glob in scope.delete)
    yield from ((MOVE, pair.source) for pair in scope.move)


def _files_in_scope(plan: Plan, walk: tree_walk.TreeWalk) -> Iterator[tuple[str, RelPath, tuple[str, ...]]]:
    for one in walk:
        if one.type != "file":
            continue
        real = one.real
        operations = tuple(_allowed_operations(plan.scope, real))
        if operations and _is_reachable(plan, real):
            yield one.path, real, operations


def _allowed_operations(scope: Scope, real: RelPath) -> Iterator[str]:
    yield from (operation for operation in (MODIFY, DELETE) if is_allowed(scope, RequestedOperation(operation, real)))
    denied = any(glob.matches(real.parts) for glob in scope.deny)
    if not denied and any(pair.source.matches(real.parts) for pair in scope.move):
        yield MOVE


def _is_reachable(plan: Plan, real: RelPath) -> bool:
    return not is_control_plane(real) and not is_unreadable(real) and is_unlocked(plan, real)
