"""Usage of a plan: what was done under it, over all sessions and processes, as its limits count it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kaiza.domain.change import bytes_written


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
