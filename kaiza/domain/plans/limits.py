"""How much a plan still allows: its limits against what the record says was used."""

from collections.abc import Iterable
from typing import NamedTuple

from kaiza.domain.plans.plan import Limits
from kaiza.domain.plans.usage import PlanUsage


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
