"""Changes without Kaiza as a review shows them, from the reports on the sessions that it is about."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kaiza.domain.audit.record import Record
from kaiza.domain.manifest.report import OutsideChange, OutsideReport
from kaiza.domain.review.evidence import UngovernedEvidence, UngovernedItem
from kaiza.domain.review.report import ReviewSelection
from kaiza.queries.outside_changes import read_outside_changes
from kaiza.queries.review_records import is_usable
from kaiza.store.audit.record_search import member_text, search_records
from kaiza.store.workspace import Workspace

_MAX_SESSIONS = 64
_BEGIN, _END = "begin_session", "end_session"


@dataclass(slots=True)
class _SessionSpan:
    """The records of a session's begin and end."""

    begin: Record | None = None
    end: Record | None = None


def gather_ungoverned(
    workspace: Workspace, selection: ReviewSelection, selected: Sequence[Record], now: str
) -> UngovernedEvidence | None:
    """What changed without Kaiza in the sessions of a review; None for a single call, and without a manifest."""
    if selection.kind == "request":
        return None
    named = {record["session_id"] for record in selected if isinstance(record["session_id"], str)}
    compared = sorted(named)[:_MAX_SESSIONS]
    spans = _find_spans(workspace, selection, selected, compared)
    return merge_reports(_read_reports(workspace, spans, now), is_complete=len(compared) == len(named))


def merge_reports(reports: Iterable[OutsideReport | None], *, is_complete: bool = True) -> UngovernedEvidence | None:
    """The evidence of one or several sessions; None without a report. A path counts once.

    A report of None, or sessions that were left out, make the comparison partial.
    """
    found = list(reports)
    listed = [report for report in found if report is not None]
    if not listed:
        return None
    is_whole = is_complete and len(listed) == len(found) and all(each.coverage.state == "whole" for each in listed)
    changes = {change.path: change for report in listed for change in report.ungoverned}
    hidden = sum(max(0, report.ungoverned_count - len(report.ungoverned)) for report in listed)
    return UngovernedEvidence(
        manifest="whole" if is_whole else "partial",
        compared=max(report.coverage.entries for report in listed),
        not_covered=max(report.coverage.uncovered for report in listed),
        compared_since=min(report.begun_at for report in listed),
        count=len(changes) + hidden,
        items=[_item_of(change) for change in changes.values()],
    )


def _find_spans(
    workspace: Workspace, selection: ReviewSelection, selected: Sequence[Record], session_ids: Iterable[str]
) -> dict[str, _SessionSpan]:
    spans = {session_id: _SessionSpan() for session_id in session_ids}
    # A plan's records name neither the begin nor the end of a session.
    records = selected if selection.kind == "session" else _search_spans(workspace.root, spans)
    for record in records:
        span = spans.get(record["session_id"])
        # A refused call neither begins nor ends a session.
        if span is None or record["outcome"] != "ok":
            continue
        if record["tool_name"] == _BEGIN:
            span.begin = record
        elif record["tool_name"] == _END:
            span.end = record
    return spans


def _search_spans(root: str, session_ids: Iterable[str]) -> Iterator[Record]:
    texts = [member_text("session_id", session_id) for session_id in session_ids]
    for _line, record in search_records(root, texts) if texts else ():
        if record.get("tool_name") in (_BEGIN, _END) and is_usable(record):
            yield record


def _read_reports(workspace: Workspace, spans: Mapping[str, _SessionSpan], now: str) -> Iterator[OutsideReport | None]:
    """The saved report of each session that ended, None where there is none.

    Open sessions are compared once, from the begin of the first.
    """
    begun = {session_id: span for session_id, span in spans.items() if span.begin is not None}
    still_open = [session_id for session_id, span in begun.items() if span.end is None]
    first_open = min(still_open, key=lambda session_id: _begin_of(begun[session_id]), default=None)
    yield from (None for _ in range(len(spans) - len(begun)))
    for session_id, span in begun.items():
        if span.end is not None or session_id == first_open:
            found = read_outside_changes(workspace, session_id, _begin_of(span), span.end, now)
            yield None if found.source == "not_taken" else found.report


def _begin_of(span: _SessionSpan) -> str:
    return str(span.begin["timestamp"]) if span.begin is not None else ""


def _item_of(change: OutsideChange) -> UngovernedItem:
    old_hash = change.before.hash if change.before else None
    return UngovernedItem(change.path, change.change, change.source, old_hash, change.is_ignored, change.is_overwritten)
