"""May this happen to this path under this plan? What is not named is not allowed, and what is denied never is."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kaiza.domain.paths.denial import DenyGlob, find_denial
from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.protected_names import find_steering_part
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.plan import MoveRule, Phase, Plan, Scope

MODIFY, CREATE, DELETE, MOVE = "modify", "create", "delete", "move"
_MAX_SHOWN = 3


class RequestedOperation(NamedTuple):
    """One thing to be done to one file; a move is from `source` to `path`, and may change what it moves."""

    operation: str
    path: RelPath
    source: RelPath | None = None
    edited: bool = False

    @property
    def paths(self) -> tuple[RelPath, ...]:
        """Every path that it touches."""
        return (self.path,) if self.source is None else (self.source, self.path)


class ScopeViolation(NamedTuple):
    """Why not, and what would have been allowed."""

    requested: RequestedOperation
    path: str
    denied_by: str | None
    only_phase: bool
    """The plan allows it, and the phase does not."""
    allowed_operations: tuple[str, ...]
    """What else the plan allows on the path."""
    nearest_patterns: tuple[str, ...]
    """The patterns of the same operation that come nearest."""


def find_violation(plan: Plan, phase: Phase | None, wanted: Sequence[RequestedOperation]) -> ScopeViolation | None:
    """The first thing that is not allowed, if there is one."""
    for one in wanted:
        if not is_allowed(plan.scope, one):
            return _describe_violation(plan.scope, one, only_phase=False)
        if phase is not None and phase.scope is not None and not is_allowed(phase.scope, one):
            return _describe_violation(phase.scope, one, only_phase=True)
    return None


def is_allowed(scope: Scope, wanted: RequestedOperation) -> bool:
    """Whether a scope, taken alone, allows it."""
    if scope.deny and any(_find_denial(scope, path) for path in wanted.paths):
        return False
    if wanted.operation != MOVE:
        return _is_covered(_patterns_for(scope, wanted.operation), wanted.path)
    if not any(_is_move_covered(pair, wanted) for pair in scope.move):
        return False
    return not wanted.edited or any(_is_covered(scope.modify, path) for path in wanted.paths)


def is_denied(plan: Plan, phase: Phase | None, path: RelPath) -> bool:
    """Whether the plan or the phase denies a path, whatever is to be done to it."""
    scopes = (plan.scope, phase.scope if phase else None)
    found = (
        _describe_violation(one, RequestedOperation(MODIFY, path), only_phase=False).denied_by
        for one in scopes
        if one is not None
    )
    return any(glob is not None for glob in found)


def is_unlocked(plan: Plan, path: RelPath) -> bool:
    """Whether the plan names a protected path itself, or a protected directory above it."""
    protected = find_steering_part(path)
    if protected is None:
        return True
    depth = len(protected.parts)
    return any(len(one.parts) >= depth and path.parts[: len(one.parts)] == one.parts for one in plan.scope.unlock)


def _patterns_for(scope: Scope, operation: str) -> tuple[Glob, ...]:
    return {MODIFY: scope.modify, CREATE: scope.create, DELETE: scope.delete}.get(operation, ())


def _find_denial(scope: Scope, path: RelPath) -> DenyGlob | None:
    return find_denial(scope.deny, "/".join(path.parts))


def _is_covered(globs: Sequence[Glob], path: RelPath) -> bool:
    text = "/".join(path.parts)
    return any(glob.matches_text(text) for glob in globs)


def _is_move_covered(pair: MoveRule, wanted: RequestedOperation) -> bool:
    source = wanted.source
    return source is not None and pair.source.matches(source.parts) and pair.target.matches(wanted.path.parts)


def _describe_violation(scope: Scope, wanted: RequestedOperation, *, only_phase: bool) -> ScopeViolation:
    denied = next(((one.text, path) for path in wanted.paths if (one := _find_denial(scope, path))), None)
    path = denied[1] if denied else _uncovered_path(scope, wanted)
    return ScopeViolation(
        requested=wanted,
        path=str(path),
        denied_by=denied[0] if denied else None,
        only_phase=only_phase,
        allowed_operations=() if denied else tuple(_other_operations(scope, path, wanted.operation)),
        nearest_patterns=() if denied else _nearest_patterns(scope, wanted, path),
    )


def _uncovered_path(scope: Scope, wanted: RequestedOperation) -> RelPath:
    """Of a move's two paths, the one that no pair has on its side."""
    if wanted.source is not None and not any(pair.source.matches(wanted.source.parts) for pair in scope.move):
        return wanted.source
    return wanted.path


def _other_operations(scope: Scope, path: RelPath, operation: str) -> Iterator[str]:
    for other in (MODIFY, CREATE, DELETE):
        if other != operation and _is_covered(_patterns_for(scope, other), path):
            yield other


def _nearest_patterns(scope: Scope, wanted: RequestedOperation, path: RelPath) -> tuple[str, ...]:
    """The patterns that share the most leading names with the path."""
    if wanted.operation == MOVE:
        source_side = path == wanted.source
        texts = [(pair.source if source_side else pair.target).text for pair in scope.move]
    else:
        texts = [glob.text for glob in _patterns_for(scope, wanted.operation)]
    return tuple(
        sorted(dict.fromkeys(texts), key=lambda text: -_shared_prefix_length(text.split("/"), path.parts))[:_MAX_SHOWN]
    )


def _shared_prefix_length(pattern: Sequence[str], parts: Sequence[str]) -> int:
    count = 0
    for one, other in zip(pattern, parts, strict=False):
        if one != other:
            break
        count += 1
    return count
