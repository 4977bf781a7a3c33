"""Tool `begin_session`: recover from a crash, then describe the new session, its plans and the state of the log."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain.paging.list_cut import cut_lists
from kaiza.domain.paths import rel_path
from kaiza.domain.plans.plan import APPROVED
from kaiza.domain.roles import describe_role
from kaiza.tools.planning.list_plans import describe_unlisted, plan_row
from kaiza.tools.view import Answer, RecoveryView

NAME = "begin_session"
_MAX_SUMMARY = 200


@dataclass(frozen=True, slots=True)
class Request:
    """Nothing: the boundary has put the role into the proposed session already."""


def parse(_arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Return the request; the schema has checked the arguments."""
    return Request()


def run(_request: Request, view: RecoveryView) -> Answer:
    """Describe the session. It is open once the record of this call is written."""
    session = view.session
    recovered = view.recover()
    loosening = view.adopt_settings()
    audit = view.log.catch_up()  # the head before this call's own record, which the receipt names
    view.begin_manifest()
    plans = _list_plan_rows(view)
    output: dict[str, Any] = {
        "session_id": session.session_id,
        "role": describe_role(session.role),
        "workspace_root": session.workspace_root,
        "workspace_uri": rel_path.to_uri(session.workspace_root, rel_path.ROOT),
        "state": view.audit_state.find_role_state(session.role),
        "expires_at": session.expires_at(view.caps.session_idle_hours),
        "plans": plans,
        "audit": audit,
        "recovered": recovered,
    }
    approved = sum(1 for plan in plans if plan["status"] == APPROVED)
    role = describe_role(session.role).capitalize()
    sentences = [
        f"{role} session open; plans that say APPROVED: {approved}; the log is {audit['verdict']}.",
        _describe_reading(view.reading_progress),
        describe_unlisted(view),
        view.arrival,
        None if view.implies_session else "Each call passes session_id.",
        f"kaiza.toml loosens {', '.join(loosening)}; that counts once a person runs kaiza adopt."
        if loosening
        else None,
    ]
    output["summary"] = _join_sentences(sentences)
    detail = {"state": view.state_id, "live": view.note_served()}
    return Answer(cut_lists(output, view.caps, "Call list_plans to see all plans."), detail=detail)


def _describe_reading(progress: Mapping[str, int] | None) -> str | None:
    if progress is None:
        return None
    done = f", {100 * progress['bytes'] // progress['of']} % so far" if progress["of"] else ""
    return f"It is still being read{done}; reading files works, changes wait."


def _join_sentences(sentences: Iterable[str | None]) -> str:
    """The sentences that together fit into a summary, the first ones first."""
    summary = ""
    for sentence in filter(None, sentences):
        joined = f"{summary} {sentence}".lstrip()
        summary = joined if len(joined) <= _MAX_SUMMARY else summary
    return summary


def _list_plan_rows(view: RecoveryView) -> list[dict[str, Any]]:
    """The plans, approved ones first, without their findings."""
    stored = (view.plans.read(plan_id) for plan_id in view.plans.listed_ids())
    rows = sorted(
        (plan_row(plan) for plan in stored if plan), key=lambda row: (row["status"] != APPROVED, row["plan_id"])
    )
    listed = rows[: view.caps.listed_plans]
    return [{name: value for name, value in row.items() if name != "findings"} for row in listed]
