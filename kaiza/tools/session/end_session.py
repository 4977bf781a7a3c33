"""Tool `end_session`: close the session, list its net changes, and what changed without Kaiza."""

from kaiza.domain.audit.inverse_changes import net_changes
from kaiza.domain.manifest.report import MAX_ANSWERED
from kaiza.domain.paging.list_cut import cut_lists
from kaiza.domain.paths.shown_names import escape_name
from kaiza.tools.session.session_status import session_counts
from kaiza.tools.view import Answer, WorkspaceView


def run(_request: object, view: WorkspaceView) -> Answer:
    """Summarize the session. It is closed once the record of this call is written."""
    counts = session_counts(view.session)
    changes = net_changes(change for record in view.session_changes() for change in record.changes)
    report = view.end_manifest()
    coverage, outside = report.coverage, f"Changed without Kaiza: {report.ungoverned_count}."
    if coverage.gaps == ("not_bound",):
        outside = "What changed without Kaiza was not compared: the workspace is not adopted."
    elif coverage.state == "partial":
        outside = f"Changed without Kaiza: at least {report.ungoverned_count}; not everything could be compared."
    summary = f"Session ended. Calls: {counts['calls']}, changes: {counts['changes']}, refusals: {counts['refusals']}."
    output = {
        "counts": counts,
        "changes": changes,
        "ungoverned": [
            {name: escape_name(value) for name, value in change.as_answer().items()}
            for change in report.ungoverned[:MAX_ANSWERED]
        ],
        "ungoverned_count": report.ungoverned_count,
        "manifest": coverage.state,
        "summary": f"{summary} {outside} A person can review it: kaiza review",
    }
    manifest = {
        "state": coverage.state,
        "ungoverned": report.ungoverned_count,
        "governed": report.governed_count,
        "already_there": report.already_there_count,
        "uncovered": coverage.uncovered,
        "gaps": list(coverage.gaps),
        "sha256": report.list_hash,
    }
    output = cut_lists(output, view.caps, "Not all changes are listed: kaiza session show has them.")
    return Answer(output, detail={"manifest": manifest})
