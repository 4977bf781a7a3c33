"""Open a session: who works, where, and in what state the record is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain.paths import rel_path
from kaiza.domain.plans.plan import APPROVED
from kaiza.tools.planning.list_plans import plan_row
from kaiza.tools.view import Answer, RecoveryView

NAME = "begin_session"


@dataclass(frozen=True, slots=True)
class Request:
    """The role is in the session that the view proposes."""

    role: str


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Take the arguments as the schema left them."""
    return Request(arguments["role"])


def run(_request: Request, view: RecoveryView) -> Answer:
    """Say what has been opened; it is open once this call's record is written."""
    session = view.session
    recovered = view.recover()
    judged = view.log.catch_up()
    plans = _list_plan_rows(view)
    output = {
        "session_id": session.session_id,
        "role": session.role,
        "workspace_root": session.workspace_root,
        "workspace_uri": rel_path.to_uri(session.workspace_root, rel_path.ROOT),
        "state": "locked" if session.role in view.audit_state.locks else "active",
        "expires_at": session.expires_at(view.caps.session_idle_hours),
        "plans": plans,
        "audit": judged,
        "recovered": recovered,
    }
    approved = sum(1 for plan in plans if plan["status"] == APPROVED)
    summary = f"{session.role} session open; approved plans: {approved}; the record is {judged['verdict']}."
    return Answer({**output, "summary": summary})


def _list_plan_rows(view: RecoveryView) -> list[dict[str, Any]]:
    """The plans, approved ones first; what is wrong with one is told by list_plans."""
    stored = (view.plans.read(plan_id) for plan_id in view.plans.plan_ids())
    rows = sorted(
        (plan_row(one) for one in stored if one), key=lambda told: (told["status"] != APPROVED, told["plan_id"])
    )
    return [{name: value for name, value in told.items() if name != "findings"} for told in rows][
        : view.caps.listed_plans
    ]
