"""Tool `session_status`: role, lock, call counts and plan usage of the session."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kaiza.domain.audit.projection import Session
from kaiza.domain.paging.list_cut import cut_lists
from kaiza.domain.plans.plan import PlanUsage
from kaiza.domain.roles import describe_role
from kaiza.tools.view import Answer, PlansView, SessionView

NAME = "session_status"


class _PlanUseView(SessionView, PlansView, Protocol):
    """The session, and the plans whose usage is reported."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request without arguments."""


def parse(_arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Return the request; the tool has no arguments of its own."""
    return Request()


def session_counts(session: Session) -> dict[str, int]:
    """Counts of the session so far, without this call."""
    return {"calls": session.calls, "changes": session.changes, "refusals": session.refusals}


def _plan_usage(plan_id: str, usage: PlanUsage, view: _PlanUseView) -> dict[str, Any]:
    """Usage of a plan by all sessions, and its limits."""
    stored = view.plans.read(plan_id)
    plan = stored.parsed.plan if stored else None
    return {
        "plan_id": plan_id,
        "files": usage.file_count,
        "lines": usage.lines,
        "bytes": usage.bytes,
        "operations": usage.operations,
        "refusals": usage.refusals,
        "limits": plan.limits.as_json() if plan else {},
    }


def run(_request: Request, view: _PlanUseView) -> Answer:
    """Return role, state, counts and plan usage."""
    session = view.session
    audit_state = view.audit_state
    lock = audit_state.locks.get(session.role)
    used = None if audit_state.is_partial else sorted(audit_state.usage.items())
    output: dict[str, Any] = {
        "session_id": session.session_id,
        "role": describe_role(session.role),
        "state": audit_state.find_role_state(session.role),
        "counts": session_counts(session),
        "plan_use": used and [_plan_usage(plan_id, usage, view) for plan_id, usage in used],
    }
    if lock:
        output["locked_by"] = {
            "error_code": lock.error_code,
            "request_id": lock.request_id,
            "seq": lock.seq,
            "at": lock.at,
        }
    counts = output["counts"]
    state = output["state"] or "The log is still being read"
    summary = f"{state}: {counts['calls']} calls, {counts['changes']} changes, {counts['refusals']} refusals."
    return Answer(
        cut_lists({**output, "summary": summary}, view.caps, "Not all plans are listed: kaiza status has them.")
    )
