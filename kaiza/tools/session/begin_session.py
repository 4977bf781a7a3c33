"""Tool `begin_session`: recover from a crash, then describe the new session, its plans and the state of the log."""

from typing import Any

from kaiza.domain.paging.list_cut import cut_lists
from kaiza.domain.paths import rel_path
from kaiza.domain.plans.plan import APPROVED
from kaiza.domain.roles import describe_role
from kaiza.tools.planning.list_plans import describe_unlisted, plan_row
from kaiza.tools.view import Answer, WorkspaceView

_MAX_SUMMARY = 200


def run(_request: object, view: WorkspaceView) -> Answer:
    """Describe the session. It is open once the record of this call is written."""
    session = view.session  # the boundary has made it of the arguments
    recovered = view.recover()
    loosening = view.adopt_settings()
    audit = view.verify_news()  # the head before this call's own record, which the receipt names
    view.begin_manifest()
    stored = (view.plans.read(plan_id) for plan_id in view.plans.listed_ids())
    rows = (plan_row(plan) for plan in stored if plan)
    plans = sorted(rows, key=lambda row: (row["status"] != APPROVED, row["plan_id"]))[: view.caps.listed_plans]
    output: dict[str, Any] = {
        "session_id": session.session_id,
        "role": describe_role(session.role),
        "workspace_root": session.workspace_root,
        "workspace_uri": rel_path.to_uri(session.workspace_root, rel_path.ROOT),
        "state": view.audit_state.find_role_state(session.role),
        "expires_at": session.expires_at(view.caps.session_idle_hours),
        "plans": [{name: value for name, value in row.items() if name != "findings"} for row in plans],
        "audit": audit,
        "recovered": recovered,
        "summary": _build_summary(view, plans, audit["verdict"], loosening),
    }
    detail = {"state": view.state_id, "live": view.note_served()}
    return Answer(cut_lists(output, view.caps, "Call list_plans to see all plans."), detail=detail)


def _build_summary(view: WorkspaceView, plans: list[dict[str, Any]], verdict: str, loosening: list[str]) -> str:
    role = describe_role(view.session.role).capitalize()
    approved = sum(1 for plan in plans if plan["status"] == APPROVED)
    reading, progress = None, view.reading_progress
    if progress is not None:
        done = f", {100 * progress['bytes'] // progress['of']} % so far" if progress["of"] else ""
        reading = f"It is still being read{done}; reading files works, changes wait."
    keys = ", ".join(loosening)
    sentences = [
        f"{role} session open; plans that say APPROVED: {approved}; the log is {verdict}.",
        reading,
        describe_unlisted(view),
        view.arrival,
        None if view.implies_session else "Each call passes session_id.",
        f"kaiza.toml loosens {keys}; that counts once a person runs kaiza adopt." if keys else None,
    ]
    # The most important come first: those that do not fit any more are left out.
    summary = ""
    for sentence in filter(None, sentences):
        joined = f"{summary} {sentence}".lstrip()
        summary = joined if len(joined) <= _MAX_SUMMARY else summary
    return summary
