"""May this happen to this path under this plan? What is not named is not allowed, and what is denied never is."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kaiza.domain.denial import Denial, first_denial
from kaiza.domain.globs import Glob
from kaiza.domain.paths import RelPath
from kaiza.domain.plan import Move, Phase, Plan, Scope
from kaiza.domain.protected_names import steering

MODIFY, CREATE, DELETE, MOVE = "modify", "create", "delete", "move"
_SHOWN = 3


class Wanted(NamedTuple):
    """One thing to be done to one file; a move is from `source` to `path`, and may change what it moves."""

    operation: str
    path: RelPath
    source: RelPath | None = None
    edited: bool = False

    @property
    def paths(self) -> tuple[RelPath, ...]:
        """Every path that it touches."""
        return (self.path,) if self.source is None else (self.source, self.path)


class Refused(NamedTuple):
    """Why not, and what would have been allowed."""

    wanted: Wanted
    path: str
    denied_by: str | None
    only_phase: bool
    """The plan allows it, and the phase does not."""
    instead: tuple[str, ...]
    """What else the plan allows on the path."""
    nearest: tuple[str, ...]
    """The patterns of the same operation that come nearest."""


def refused(plan: Plan, phase: Phase | None, wanted: Sequence[Wanted]) -> Refused | None:
    """The first thing that is not allowed, if there is one."""
    for one in wanted:
        if not allows(plan.scope, one):
            return _why(plan.scope, one, only_phase=False)
        if phase is not None and phase.scope is not None and not allows(phase.scope, one):
            return _why(phase.scope, one, only_phase=True)
    return None


def allows(scope: Scope, wanted: Wanted) -> bool:
    """Whether a scope, taken alone, allows it."""
    if scope.deny and any(_denial(scope, path) for path in wanted.paths):
        return False
    if wanted.operation != MOVE:
        return _covered(_globs(scope, wanted.operation), wanted.path)
    if not any(_moves(pair, wanted) for pair in scope.move):
        return False
    return not wanted.edited or any(_covered(scope.modify, path) for path in wanted.paths)


def denies(plan: Plan, phase: Phase | None, path: RelPath) -> bool:
    """Whether the plan or the phase denies a path, whatever is to be done to it."""
    scopes = (plan.scope, phase.scope if phase else None)
    found = (_why(one, Wanted(MODIFY, path), only_phase=False).denied_by for one in scopes if one is not None)
    return any(glob is not None for glob in found)


def unlocks(plan: Plan, path: RelPath) -> bool:
    """Whether the plan names a protected path itself, or a protected directory above it."""
    protected = steering(path)
    if protected is None:
        return True
    depth = len(protected.parts)
    return any(len(one.parts) >= depth and path.parts[: len(one.parts)] == one.parts for one in plan.scope.unlock)


def _globs(scope: Scope, operation: str) -> tuple[Glob, ...]:
    return {MODIFY: scope.modify, CREATE: scope.create, DELETE: scope.delete}.get(operation, ())


def _denial(scope: Scope, path: RelPath) -> Denial | None:
    return first_denial(scope.deny, "/".join(path.parts))


def _covered(globs: Sequence[Glob], path: RelPath) -> bool:
    text = "/".join(path.parts)
    return any(glob.matches_text(text) for glob in globs)


def _moves(pair: Move, wanted: Wanted) -> bool:
    source = wanted.source
    return source is not None and pair.source.matches(source.parts) and pair.target.matches(wanted.path.parts)


def _why(scope: Scope, wanted: Wanted, *, only_phase: bool) -> Refused:
    denied = next(((one.text, path) for path in wanted.paths if (one := _denial(scope, path))), None)
    path = denied[1] if denied else _stray(scope, wanted)
    return Refused(
        wanted=wanted,
        path=str(path),
        denied_by=denied[0] if denied else None,
        only_phase=only_phase,
        instead=() if denied else tuple(_instead(scope, path, wanted.operation)),
        nearest=() if denied else _nearest(scope, wanted, path),
    )


def _stray(scope: Scope, wanted: Wanted) -> RelPath:
    """Of a move's two paths, the one that no pair has on its side."""
    if wanted.source is not None and not any(pair.source.matches(wanted.source.parts) for pair in scope.move):
        return wanted.source
    return wanted.path


def _instead(scope: Scope, path: RelPath, operation: str) -> Iterator[str]:
    for other in (MODIFY, CREATE, DELETE):
        if other != operation and _covered(_globs(scope, other), path):
            yield other


def _nearest(scope: Scope, wanted: Wanted, path: RelPath) -> tuple[str, ...]:
    """The patterns that share the most leading names with the path."""
    if wanted.operation == MOVE:
        source_side = path == wanted.source
        texts = [(pair.source if source_side else pair.target).text for pair in scope.move]
    else:
        texts = [glob.text for glob in _globs(scope, wanted.operation)]
    return tuple(sorted(dict.fromkeys(texts), key=lambda text: -_shared(text.split("/"), path.parts))[:_SHOWN])


def _shared(pattern: Sequence[str], parts: Sequence[str]) -> int:
    count = 0
    for one, other in zip(pattern, parts, strict=False):
        if one != other:
            break
        count += 1
    return count
