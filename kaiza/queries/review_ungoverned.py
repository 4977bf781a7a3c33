"""Changes without Kaiza as a review shows them, from the reports on the sessions that it is about."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kaiza.domain.audit.record import Record
from kaiza.domain.manifest.report import Coverage, OutsideReport
from kaiza.domain.review.evidence import UngovernedEvidence
from kaiza.domain.review.report import ReviewSelection
from kaiza.queries.review_records import is_usable
from kaiza.store.audit.reader import member_text, search_records
from kaiza.store.session_manifest import MAX_SECONDS, compare_session, load_report
from kaiza.store.workspace import Workspace

_MAX_SESSIONS = 64
_ENDS = ("begin_session", "end_session")


def gather_ungoverned(
    workspace: Workspace, selection: ReviewSelection, selected: Sequence[Record], now: str
) -> UngovernedEvidence | None:
    """What changed without Kaiza in the sessions of a review; None for a single call, and without a manifest."""
    if selection.kind == "request":
        return None
    named = {record.session_id for record in selected if record.session_id is not None}
    compared = sorted(named)[:_MAX_SESSIONS]
    # A plan's records name neither the begin nor the end of a session.
    records = selected if selection.kind == "session" else _search_sessions(workspace.root, compared)
    ends: dict[tuple[str | None, str | None], Record] = {}
    for record in records:
        # A refused call neither begins nor ends a session.
        if record.tool_name in _ENDS and record.outcome == "ok":
            ends[record.session_id, record.tool_name] = record
    return merge_reports(_read_reports(workspace, compared, ends, now), is_complete=len(compared) == len(named))


def _search_sessions(root: str, session_ids: Iterable[str]) -> Iterator[Record]:
    texts = [member_text("session_id", session_id) for session_id in session_ids]
    found = search_records(root, texts) if texts else ()
    return (record for _line, record in found if record.tool_name in _ENDS and is_usable(record))


def _read_reports(
    workspace: Workspace, session_ids: Sequence[str], ends: Mapping[tuple[str | None, str | None], Record], now: str
) -> Iterator[OutsideReport | None]:
    """The report on each session; None where there is none."""
    begun = {each: ends[each, "begin_session"] for each in session_ids if (each, "begin_session") in ends}
    yield from (None for session_id in session_ids if session_id not in begun)
    # Open sessions are compared once, from the begin of the first: the others' changes are among its changes.
    still_open = [session_id for session_id in begun if (session_id, "end_session") not in ends]
    first_open = min(still_open, key=lambda session_id: begun[session_id].timestamp, default=None)
    for session_id, begin in begun.items():
        end = ends.get((session_id, "end_session"))
        if end is not None or session_id == first_open:
            yield read_outside_changes(workspace, session_id, begin.timestamp, end, now)


def read_outside_changes(
    workspace: Workspace, session_id: str, begun_at: str, end_record: Record | None, now: str
) -> OutsideReport | None:
    """What changed without Kaiza in a session: compared now while it is open, else what its end recorded.

    None if nothing was recorded. Takes ten seconds at most; the report's coverage says what was not compared by then.
    """
    if end_record is None:
        return compare_session(workspace, session_id, begun_at, now, MAX_SECONDS)
    counts = end_record.detail.get("manifest")
    if not isinstance(counts, Mapping) or not isinstance(counts.get("sha256"), str):
        return None
    numbers = [counts.get("ungoverned"), counts.get("governed"), counts.get("already_there") or 0]
    if not all(type(number) is int for number in numbers):
        return None
    saved = load_report(workspace.manifest.state_path, session_id)
    if saved is not None and saved.list_hash == counts["sha256"]:
        return saved
    # The file is lost, or is not the one that the log vouches for: only its counts are known.
    return OutsideReport(
        session_id,
        begun_at,
        end_record.timestamp,
        ungoverned_count=counts["ungoverned"],
        governed_count=counts["governed"],
        already_there_count=counts["already_there"],
        coverage=Coverage("partial", gaps=("no_manifest",)) if counts["state"] == "partial" else Coverage(),
    )


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
        items=list(changes.values()),
    )
