"""What a plan's scope touches in the workspace as it is now; counted when it is shown or sealed, not on every call."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from kaiza.domain.paths import ROOT
from kaiza.domain.plan import Plan
from kaiza.domain.scope import DELETE, MODIFY, Wanted, allows
from kaiza.store import scan
from kaiza.store.workspace import Workspace

MOST_NAMED = 200


@dataclass(frozen=True, slots=True)
class Touched:
    """How many files are in scope; the first of them by name, and whether the count was broken off."""

    files: int
    named: tuple[str, ...]
    broken_off: bool


def touched(plan: Plan, workspace: Workspace, *, seconds: float = 5.0) -> Touched:
    """Look at every file once, for at most so long."""
    until = time.monotonic() + seconds
    with scan.walk(workspace, ROOT, include_ignored=True, over=lambda: time.monotonic() > until, since="") as walk:
        found = list(_in_scope(plan, walk))
        return Touched(len(found), tuple(found[:MOST_NAMED]), walk.broken_off)


def _in_scope(plan: Plan, walk: scan.Walk) -> Iterator[str]:
    for one in walk:
        if one.type != "file":
            continue
        real = one.real
        moved = any(pair.source.matches(real.parts) for pair in plan.scope.move)
        if moved or any(allows(plan.scope, Wanted(operation, real)) for operation in (MODIFY, DELETE)):
            yield one.path
