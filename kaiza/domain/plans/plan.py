"""Plan values: scope, limits, phases, and the usage counted against the limits.

`parser` creates plans; a `Plan` exists only for bytes that were parsed without an error.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kaiza.domain.change import bytes_written
from kaiza.domain.paths.denial import DenyGlob
from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.rel_path import RelPath


@dataclass(slots=True)
class PlanUsage:
    """What changes have used of one plan's limits."""

    files: dict[str, int] = field(default_factory=dict)
    """Number of changes by path."""
    lines: int = 0
    bytes: int = 0
    operations: int = 0
    refusals: int = 0
    unnamed: int = 0
    """Number of files from an archived log whose paths were too many to carry over."""

    @property
    def file_count(self) -> int:
        """Number of distinct files. A file counted in `unnamed` counts again if it is changed again."""
        return len(self.files) + self.unnamed

    def charge(self, changes: Sequence[Mapping[str, Any]], sign: int) -> None:
        """Add the changes of an intent (`sign` 1), or subtract them because they were not made (`sign` -1)."""
        for change in changes:
            for path in filter(None, (change["path"], change["source"])):
                self.files[path] = self.files.get(path, 0) + sign
                if not self.files[path]:
                    del self.files[path]
            self.lines += sign * (change["lines_added"] + change["lines_removed"])
            self.bytes += sign * bytes_written(change)
            self.operations += sign


def combine_usage(one: PlanUsage, other: PlanUsage, operator: Callable[[int, int], int]) -> PlanUsage:
    """Combine two usages number by number and path by path, for example with `max` or `add`."""
    files = {path: operator(one.files.get(path, 0), other.files.get(path, 0)) for path in {**one.files, **other.files}}
    names = ("lines", "bytes", "operations", "refusals", "unnamed")
    return PlanUsage(files, *(operator(getattr(one, name), getattr(other, name)) for name in names))


DRAFT, APPROVED, REJECTED, REVOKED, DONE = "DRAFT", "APPROVED", "REJECTED", "REVOKED", "DONE"
STATUSES = (DRAFT, APPROVED, REJECTED, REVOKED, DONE)
STATUS_TRANSITIONS = {DRAFT: (APPROVED, REJECTED), APPROVED: (REVOKED, DONE)}
"""Allowed transitions. The other statuses are final."""

PLAN_ID_PATTERN = re.compile(r"[A-Z][A-Z0-9]*(-[A-Za-z0-9]+)*")
MAX_ID_LENGTH = 64
MAX_BYTES = 256 * 1024
MAX_SAVED_PLANS = 1000
"""Agents cannot save a new plan when this many exist."""
INVALID = "INVALID"
"""Shown in lists as the status of a plan that has errors."""


class MoveRule(NamedTuple):
    """Allows moves from paths that match `source` to paths that match `target`."""

    source: Glob
    target: Glob


class Scope(NamedTuple):
    """Patterns by operation. What matches none is not allowed; what matches `deny` never is."""

    modify: tuple[Glob, ...] = ()
    create: tuple[Glob, ...] = ()
    delete: tuple[Glob, ...] = ()
    move: tuple[MoveRule, ...] = ()
    deny: tuple[DenyGlob, ...] = ()
    unlock: tuple[RelPath, ...] = ()


class Limits(NamedTuple):
    """Limits over the whole plan; None means no limit."""

    files: int | None = None
    lines: int | None = None
    bytes: int | None = None
    operations: int | None = None
    refusals: int | None = None

    def as_json(self) -> dict[str, int]:
        """The limits that are set."""
        limits = {name: getattr(self, name) for name in LIMITS}
        return {name: limit for name, limit in limits.items() if limit is not None}


LIMITS = ("files", "lines", "bytes", "operations", "refusals")


class Phase(NamedTuple):
    """One step of a plan. Its scope, if any, only narrows the plan's."""

    phase_id: str
    objective: str = ""
    scope: Scope | None = None
    verify: tuple[tuple[str, ...], ...] = ()


class ContentPolicy(NamedTuple):
    """The content rules that are enforced."""

    secrets: bool = True
    stubs: bool = False
    rust: bool = False


class Plan(NamedTuple):
    """A valid plan. `plan_hash` is the SHA-256 of the file's bytes."""

    plan_id: str
    title: str
    status: str
    author: str
    created: str
    plan_hash: str
    scope: Scope
    approved_by: str | None = None
    approved_at: str | None = None
    expires: str | None = None
    limits: Limits = Limits()
    phases: tuple[Phase, ...] = ()
    policy: ContentPolicy = ContentPolicy()

    def phase(self, phase_id: str | None) -> Phase | None:
        """The phase with this id, or None."""
        return next((phase for phase in self.phases if phase.phase_id == phase_id), None)

    def is_expired(self, now: str) -> bool:
        """Whether the plan has expired at `now`."""
        # Both are UTC with milliseconds and a Z, so they compare as text.
        return self.expires is not None and now >= self.expires


def is_plan_id(text: str) -> bool:
    """Whether the text is a valid plan id, and so a valid file name without suffix."""
    return len(text) <= MAX_ID_LENGTH and PLAN_ID_PATTERN.fullmatch(text) is not None


class Overrun(NamedTuple):
    """A limit that a change would exceed: its value, what is used, and what the change asks for."""

    limit: str
    allowed: int
    used: int
    asked: int


def overrun_before(limits: Limits, usage: PlanUsage, paths: Iterable[str], operations: int) -> Overrun | None:
    """First limit exceeded that is known before the tool runs: refusals, operations or files."""
    if limits.refusals is not None and usage.refusals >= limits.refusals:
        return Overrun("refusals", limits.refusals, usage.refusals, 0)
    new_files = sum(1 for path in set(paths) if path not in usage.files)
    return _find_overrun("operations", limits.operations, usage.operations, operations) or _find_overrun(
        "files", limits.files, usage.file_count, new_files
    )


def overrun_after(limits: Limits, usage: PlanUsage, lines: int, size: int) -> Overrun | None:
    """First limit exceeded that is known only from the result: lines or bytes."""
    return _find_overrun("lines", limits.lines, usage.lines, lines) or _find_overrun(
        "bytes", limits.bytes, usage.bytes, size
    )


def _find_overrun(name: str, allowed: int | None, used: int, asked: int) -> Overrun | None:
    if allowed is None or asked == 0 or used + asked <= allowed:
        return None
    return Overrun(name, allowed, used, asked)
