"""Tool `end_session`: close the session, list its net changes, and what changed without Kaiza."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain.audit.inverse_changes import net_changes
from kaiza.domain.manifest.report import MAX_ANSWERED, OutsideChange, OutsideReport
from kaiza.domain.paging.list_cut import cut_lists
from kaiza.domain.paths.shown_names import escape_name
from kaiza.tools.session.session_status import session_counts
from kaiza.tools.view import Answer, EndView

NAME = "end_session"


@dataclass(frozen=True, slots=True)
class Request:
    """A request without arguments."""


def parse(_arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Return the request; the tool has no arguments of its own."""
    return Request()


def run(_request: Request, view: EndView) -> Answer:
    """Summarize the session. It is closed once the record of this call is written."""
    counts = session_counts(view.session)
    changes = net_changes(change for record in view.session_changes() for change in record["changes"])
    report = view.end_manifest()
    summary = f"Session ended. Calls: {counts['calls']}, changes: {counts['changes']}, refusals: {counts['refusals']}."
    output = {
        "counts": counts,
        "changes": changes,
        "ungoverned": list(map(_describe_change, report.ungoverned[:MAX_ANSWERED])),
        "ungoverned_count": report.ungoverned_count,
        "manifest": report.coverage.state,
        "summary": f"{summary} {_describe_outside(report)} A person can review it: kaiza review",
    }
    hint = "Not all changes are listed: kaiza session show has them."
    return Answer(cut_lists(output, view.caps, hint), detail={"manifest": _manifest_detail(report)})


def _describe_change(change: OutsideChange) -> Mapping[str, str]:
    """One entry of the answer."""
    return {name: escape_name(value) for name, value in change.as_answer().items()}


def _describe_outside(report: OutsideReport) -> str:
    """One sentence on what changed without Kaiza."""
    count, coverage = report.ungoverned_count, report.coverage
    if coverage.gaps == ("not_bound",):
        return "What changed without Kaiza was not compared: the workspace is not adopted."
    if coverage.state == "partial":
        return f"Changed without Kaiza: at least {count}; not everything could be compared."
    return f"Changed without Kaiza: {count}."


def _manifest_detail(report: OutsideReport) -> Mapping[str, Any]:
    """The record's part: counts, and the hash of the list that the report has."""
    return {
        "state": report.coverage.state,
        "ungoverned": report.ungoverned_count,
        "governed": report.governed_count,
        "already_there": report.already_there_count,
        "uncovered": report.coverage.uncovered,
        "gaps": list(report.coverage.gaps),
        "sha256": report.list_hash,
    }
