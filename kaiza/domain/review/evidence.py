"""What a report is computed from: records of the log, contents by hash, the files as they are now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kaiza.domain.audit.record import Record
from kaiza.domain.manifest.report import OutsideChange
from kaiza.domain.plans.plan import Plan, PlanUsage
from kaiza.domain.review.report import ReviewSelection, ReviewSource

MAX_SHOWN_BYTES = 1 << 20
"""Contents that are larger are not read for a report."""


@dataclass(frozen=True, slots=True)
class CurrentFile:
    """A file as it is now. `hash` None: there is no such file. `content` None: too large to show."""

    hash: str | None = None
    mode: int | None = None
    content: bytes | None = None
    size: int = 0
    is_readable: bool = True


class ReviewContents(Protocol):
    """Contents that the store can still read."""

    def read_content(self, digest: str) -> bytes | None:
        """The content with this SHA-256; None if it was not kept, or is too large to show."""
        ...

    def read_earlier(self, path: str, digest: str) -> bytes | None:
        """The content with this SHA-256 that a path had: from the store, or from a commit; None as above."""
        ...

    def is_hidden(self, path: str) -> bool:
        """Whether the path may not be read; then nothing that it ever contained is shown."""
        ...

    def read_current(self, path: str) -> CurrentFile:
        """The file as it is now."""
        ...


@dataclass(frozen=True, slots=True)
class PlanEvidence:
    """What is known of a plan: the text that was approved, or None, and what all sessions used of its limits."""

    plan_id: str
    plan: Plan | None
    usage: PlanUsage
    seal: Record | None = None
    """The record that sealed the plan."""
    is_changed_since: bool = False
    withdrawn: str | None = None


@dataclass(frozen=True, slots=True)
class UngovernedEvidence:
    """Differences to the manifest that the log does not explain."""

    manifest: str | None
    not_covered: int = 0
    compared: int = 0
    compared_since: str | None = None
    count: int = 0
    items: Sequence[OutsideChange] = ()


@dataclass(frozen=True, slots=True)
class InterruptedChange:
    """A change that was announced in the log by a process that has ended, and whose outcome is not recorded."""

    request_id: str
    seq: int
    tool_name: str
    paths: Sequence[str]


@dataclass(frozen=True, slots=True)
class ReviewEvidence:
    """Everything that a report is computed from, besides contents. Records are in the order of the log."""

    selection: ReviewSelection
    source: ReviewSource
    selected: Sequence[Record]
    context: Sequence[Record] = ()
    """Other records that explain the selected ones: seals and decisions of people, reports, recoveries."""
    later: Sequence[Record] = ()
    """Records of other changes to the same files, since the first selected one."""
    plans: Sequence[PlanEvidence] = ()
    ungoverned: UngovernedEvidence | None = None
    interrupted: Sequence[InterruptedChange] = ()
    lines: Mapping[int, bytes] = field(default_factory=dict)
    """Lines of the log by number, for the records that are listed."""
