"""A plan: what a person may approve, as a value. That one exists proves that its bytes were read without a fault."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kaiza.domain.change import bytes_written
from kaiza.domain.paths.denial import DenyGlob
from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.rel_path import RelPath


@dataclass(slots=True)
class PlanUsage:
    """What has been done under one plan."""

    files: dict[str, int] = field(default_factory=dict)
    """Distinct paths, each with how many changes name it."""
    lines: int = 0
    bytes: int = 0
    operations: int = 0
    refusals: int = 0
    unnamed: int = 0
    """Files of a log before this one whose paths were too many to be carried over."""

    @property
    def file_count(self) -> int:
        """How many distinct files count against the plan's limit; a path that is not named may count once more."""
        return len(self.files) + self.unnamed

    def charge(self, changes: Sequence[Mapping[str, Any]], sign: int) -> None:
        """Add the changes of an intent, or with -1 take them off again because nothing came of it."""
        for change in changes:
            for path in filter(None, (change["path"], change["source"])):
                self.files[path] = self.files.get(path, 0) + sign
                if not self.files[path]:
                    del self.files[path]
            self.lines += sign * (change["lines_added"] + change["lines_removed"])
            self.bytes += sign * bytes_written(change)
            self.operations += sign


def max_usage(one: PlanUsage, other: PlanUsage) -> PlanUsage:
    """The use of a plan by which less is left, whichever of two accounts is right."""
    files = {path: max(one.files.get(path, 0), other.files.get(path, 0)) for path in {**one.files, **other.files}}
    return PlanUsage(
        files,
        max(one.lines, other.lines),
        max(one.bytes, other.bytes),
        max(one.operations, other.operations),
        max(one.refusals, other.refusals),
        max(one.unnamed, other.unnamed),
    )


DRAFT, APPROVED, REJECTED, REVOKED, DONE = "DRAFT", "APPROVED", "REJECTED", "REVOKED", "DONE"
STATUSES = (DRAFT, APPROVED, REJECTED, REVOKED, DONE)
STATUS_TRANSITIONS = {DRAFT: (APPROVED, REJECTED), APPROVED: (REVOKED, DONE)}
"""Where a status may go; what is not here is an end."""

PLAN_ID_PATTERN = re.compile(r"[A-Z][A-Z0-9]*(-[A-Za-z0-9]+)*")
MAX_ID_LENGTH = 64
MAX_BYTES = 256 * 1024
MAX_SAVED_PLANS = 1000
"""Where there are so many plans, agents add no more."""
INVALID = "INVALID"
"""What a list shows in place of the status of a plan that counts for nothing."""


class MoveRule(NamedTuple):
    """From where to where files may be moved."""

    source: Glob
    target: Glob


class Scope(NamedTuple):
    """What may happen to which paths; what is not named is not allowed."""

    modify: tuple[Glob, ...] = ()
    create: tuple[Glob, ...] = ()
    delete: tuple[Glob, ...] = ()
    move: tuple[MoveRule, ...] = ()
    deny: tuple[DenyGlob, ...] = ()
    unlock: tuple[RelPath, ...] = ()


class Limits(NamedTuple):
    """How much may happen in all; None is no limit."""

    files: int | None = None
    lines: int | None = None
    bytes: int | None = None
    operations: int | None = None
    refusals: int | None = None

    def as_json(self) -> dict[str, int]:
        """The limits that are set."""
        told = {name: getattr(self, name) for name in LIMITS}
        return {name: limit for name, limit in told.items() if limit is not None}


LIMITS = ("files", "lines", "bytes", "operations", "refusals")


class Phase(NamedTuple):
    """One step of a plan; its scope only narrows the plan's, and none at all leaves it as it is."""

    phase_id: str
    objective: str = ""
    scope: Scope | None = None
    verify: tuple[tuple[str, ...], ...] = ()


class ContentPolicy(NamedTuple):
    """Which content rules refuse."""

    secrets: bool = True
    stubs: bool = False
    rust: bool = False


class Plan(NamedTuple):
    """A plan that was read without an error. `plan_hash` is the SHA-256 of the file's bytes."""

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
        """The phase of that name."""
        return next((phase for phase in self.phases if phase.phase_id == phase_id), None)

    def is_expired(self, now: str) -> bool:
        """Whether it is past its time; `now` is UTC with milliseconds and a Z, and so is `expires`."""
        return self.expires is not None and now >= self.expires


def is_plan_id(text: str) -> bool:
    """Whether a plan, and so its file, may have this name."""
    return len(text) <= MAX_ID_LENGTH and PLAN_ID_PATTERN.fullmatch(text) is not None


class Overrun(NamedTuple):
    """The limit that would be passed."""

    limit: str
    allowed: int
    used: int
    asked: int


def overrun_before(limits: Limits, usage: PlanUsage, paths: Iterable[str], operations: int) -> Overrun | None:
    """The first limit that stands in the way before anything is worked out: refusals, operations, files."""
    if limits.refusals is not None and usage.refusals >= limits.refusals:
        return Overrun("refusals", limits.refusals, usage.refusals, 0)
    fresh = sum(1 for path in set(paths) if path not in usage.files)
    return _find_overrun("operations", limits.operations, usage.operations, operations) or _find_overrun(
        "files", limits.files, usage.file_count, fresh
    )


def overrun_after(limits: Limits, usage: PlanUsage, lines: int, size: int) -> Overrun | None:
    """The first limit that stands in the way once the result is known: lines, bytes."""
    return _find_overrun("lines", limits.lines, usage.lines, lines) or _find_overrun(
        "bytes", limits.bytes, usage.bytes, size
    )


def _find_overrun(name: str, allowed: int | None, used: int, asked: int) -> Overrun | None:
    if allowed is None or asked == 0 or used + asked <= allowed:
        return None
    return Overrun(name, allowed, used, asked)
