"""Changes without Kaiza as a review shows them, from the reports on the sessions that it is about."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from kaiza.domain.review.evidence import UngovernedEvidence, UngovernedItem
from kaiza.domain.review.report import UngovernedChange


class ReportedState(Protocol):
    """What was at a path."""

    @property
    def hash(self) -> str | None:
        """SHA-256 of the content; None where it was not read."""
        ...


class ReportedChange(Protocol):
    """A change that the log does not explain."""

    @property
    def path(self) -> str:
        """The path now."""
        ...

    @property
    def change(self) -> UngovernedChange:
        """What happened to it."""
        ...

    @property
    def source(self) -> str | None:
        """The earlier path of a renamed entry."""
        ...

    @property
    def before(self) -> ReportedState | None:
        """The last known state before the change."""
        ...


class ReportedCoverage(Protocol):
    """How much of the workspace was compared."""

    @property
    def state(self) -> str:
        """Whole or partial."""
        ...

    @property
    def uncovered(self) -> int:
        """Entries that were not compared."""
        ...


class SessionOutsideReport(Protocol):
    """The report on what changed without Kaiza in one session."""

    @property
    def begun_at(self) -> str:
        """When the session began."""
        ...

    @property
    def ungoverned(self) -> Sequence[ReportedChange]:
        """The listed changes."""
        ...

    @property
    def ungoverned_count(self) -> int:
        """Number of all changes."""
        ...

    @property
    def coverage(self) -> ReportedCoverage:
        """How much was compared."""
        ...


def merge_reports(reports: Iterable[SessionOutsideReport]) -> UngovernedEvidence | None:
    """The evidence of one or several sessions; None without a report. A path counts once."""
    listed = list(reports)
    if not listed:
        return None
    changes = {change.path: change for report in listed for change in report.ungoverned}
    hidden = sum(max(0, report.ungoverned_count - len(report.ungoverned)) for report in listed)
    return UngovernedEvidence(
        manifest="whole" if all(report.coverage.state == "whole" for report in listed) else "partial",
        not_covered=max(report.coverage.uncovered for report in listed),
        compared_since=min(report.begun_at for report in listed),
        count=len(changes) + hidden,
        items=[_item_of(change) for change in changes.values()],
    )


def _item_of(change: ReportedChange) -> UngovernedItem:
    return UngovernedItem(change.path, change.change, change.source, change.before.hash if change.before else None)
