"""What a plan's scope touches in the workspace as it is now; counted when it is shown or sealed, not on every call.

What no plan reaches is not counted, however broad its patterns: the control plane, what may not be read, and what
steers agents unless the plan unlocks it.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kaiza.domain.globs import Glob
from kaiza.domain.paths import ROOT, RelPath
from kaiza.domain.plan import Plan, Scope
from kaiza.domain.protected_names import is_control_plane, is_unreadable
from kaiza.domain.scope import DELETE, MODIFY, MOVE, Wanted, allows, unlocks
from kaiza.store import scan
from kaiza.store.workspace import Workspace

MOST_NAMED = 200


@dataclass(frozen=True, slots=True)
class Touched:
    """How many files are in scope; the first of them by name, and whether the count was broken off."""

    files: int
    named: tuple[str, ...]
    broken_off: bool
    operations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What may happen to each of those that are named."""
    matched: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How many of the files each pattern matches, by operation and pattern."""


def touched(plan: Plan, workspace: Workspace, *, seconds: float = 5.0) -> Touched:
    """Look at every file once, for at most so long."""
    until = time.monotonic() + seconds
    patterns = tuple(_patterns(plan.scope))
    matched = {(operation, glob.text): 0 for operation, glob in patterns}
    named: dict[str, tuple[str, ...]] = {}
    files = 0
    with scan.walk(workspace, ROOT, include_ignored=True, over=lambda: time.monotonic() > until, since="") as walk:
        for path, real, operations in _in_scope(plan, walk):
            files += 1
            if files <= MOST_NAMED:
                named[path] = operations
            for operation, glob in patterns:
                if operation in operations and glob.matches(real.parts):
                    matched[operation, glob.text] += 1
        return Touched(files, tuple(named), walk.broken_off, named, matched)


def _patterns(scope: Scope) -> Iterator[tuple[str, Glob]]:
    yield from ((MODIFY, glob) for glob in scope.modify)
    yield from ((DELETE, glob) for glob in scope.delete)
    yield from ((MOVE, pair.source) for pair in scope.move)


def _in_scope(plan: Plan, walk: scan.Walk) -> Iterator[tuple[str, RelPath, tuple[str, ...]]]:
    for one in walk:
        if one.type != "file":
            continue
        real = one.real
        operations = tuple(_operations(plan.scope, real))
        if operations and _reachable(plan, real):
            yield one.path, real, operations


def _operations(scope: Scope, real: RelPath) -> Iterator[str]:
    yield from (operation for operation in (MODIFY, DELETE) if allows(scope, Wanted(operation, real)))
    denied = any(glob.matches(real.parts) for glob in scope.deny)
    if not denied and any(pair.source.matches(real.parts) for pair in scope.move):
        yield MOVE


def _reachable(plan: Plan, real: RelPath) -> bool:
    return not is_control_plane(real) and not is_unreadable(real) and unlocks(plan, real)
