"""Scope check: whether a plan and its phase allow an operation on a path.

An operation is allowed if a pattern of the plan, and of the phase if it has a scope, matches; `deny` takes precedence.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from kaiza.domain.paths.denial import DenyGlob, find_denial
from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.protected_names import find_steering_part
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.plan import Phase, Plan, Scope

MODIFY, CREATE, DELETE, MOVE = "modify", "create", "delete", "move"
_MAX_SHOWN = 3


class RequestedOperation(NamedTuple):
    """One operation on one file. A move is from `source` to `path`; `edited` if it also changes the content."""

    operation: str
    path: RelPath
    source: RelPath | None = None
    edited: bool = False

    @property
    def paths(self) -> tuple[RelPath, ...]:
        """Every path that the operation changes."""
        return (self.path,) if self.source is None else (self.source, self.path)


class ScopeViolation(NamedTuple):
    """An operation that the scope does not allow, with hints about what it does allow."""

    requested: RequestedOperation
    path: str
    denied_by: str | None
    only_phase: bool
    """The plan allows the operation, the phase does not."""
    allowed_operations: tuple[str, ...]
    """Other operations that are allowed on the path."""
    nearest_patterns: tuple[str, ...]
    """Patterns of the same operation that share the most leading names with the path."""


def find_violation(plan: Plan, phase: Phase | None, requested: Sequence[RequestedOperation]) -> ScopeViolation | None:
    """Find the first operation that is not allowed."""
    for operation in requested:
        if not is_allowed(plan.scope, operation):
            return _describe_violation(plan.scope, operation, only_phase=False)
        if phase is not None and phase.scope is not None and not is_allowed(phase.scope, operation):
            return _describe_violation(phase.scope, operation, only_phase=True)
    return None


def is_allowed(scope: Scope, requested: RequestedOperation) -> bool:
    """Whether a scope, taken alone, allows an operation."""
    if scope.deny and any(_find_denial(scope, path) for path in requested.paths):
        return False
    if requested.operation != MOVE:
        return _is_covered(_patterns_for(scope, requested.operation), requested.path)
    source, target = requested.source, requested.path
    if source is None or not any(
        rule.source.matches(source.parts) and rule.target.matches(target.parts) for rule in scope.move
    ):
        return False
    return not requested.edited or any(_is_covered(scope.modify, path) for path in requested.paths)


def is_denied(plan: Plan, phase: Phase | None, path: RelPath) -> bool:
    """Whether the plan or the phase denies a path for every operation."""
    scopes = (plan.scope, phase.scope if phase else None)
    return any(scope is not None and _find_denial(scope, path) is not None for scope in scopes)


def is_unlocked(plan: Plan, path: RelPath) -> bool:
    """Whether a path is not protected, or `unlock` lists it or a directory above it within the protected part."""
    protected = find_steering_part(path)
    if protected is None:
        return True
    # `unlock: [.github]` must not open .github/workflows: an entry has to reach the protected part.
    depth = len(protected.parts)
    return any(
        len(entry.parts) >= depth and path.parts[: len(entry.parts)] == entry.parts for entry in plan.scope.unlock
    )


def _patterns_for(scope: Scope, operation: str) -> tuple[Glob, ...]:
    return {MODIFY: scope.modify, CREATE: scope.create, DELETE: scope.delete}.get(operation, ())


def _find_denial(scope: Scope, path: RelPath) -> DenyGlob | None:
    return find_denial(scope.deny, "/".join(path.parts))


def _is_covered(globs: Sequence[Glob], path: RelPath) -> bool:
    text = "/".join(path.parts)
    return any(glob.matches_text(text) for glob in globs)


def _describe_violation(scope: Scope, requested: RequestedOperation, *, only_phase: bool) -> ScopeViolation:
    denied = next(((glob.text, path) for path in requested.paths if (glob := _find_denial(scope, path))), None)
    path = denied[1] if denied else requested.path
    source = requested.source
    if denied is None and source is not None and not any(rule.source.matches(source.parts) for rule in scope.move):
        path = source  # no rule moves it, wherever to
    others = (operation for operation in (MODIFY, CREATE, DELETE) if operation != requested.operation)
    return ScopeViolation(
        requested=requested,
        path=str(path),
        denied_by=denied[0] if denied else None,
        only_phase=only_phase,
        allowed_operations=()
        if denied
        else tuple(each for each in others if _is_covered(_patterns_for(scope, each), path)),
        nearest_patterns=() if denied else _nearest_patterns(scope, requested, path),
    )


def _nearest_patterns(scope: Scope, requested: RequestedOperation, path: RelPath) -> tuple[str, ...]:
    """Patterns of the operation, those that share the most leading names with the path first."""
    if requested.operation == MOVE:
        source_side = path == requested.source
        texts = [(rule.source if source_side else rule.target).text for rule in scope.move]
    else:
        texts = [glob.text for glob in _patterns_for(scope, requested.operation)]

    def count_shared_names(text: str) -> int:
        pairs = zip(text.split("/"), path.parts, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    return tuple(sorted(dict.fromkeys(texts), key=count_shared_names, reverse=True)[:_MAX_SHOWN])
