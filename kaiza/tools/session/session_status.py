"""Tool `session_status`: role, lock, call counts and plan usage of the session."""

from typing import Any

from kaiza.domain.audit.projection import Session
from kaiza.domain.paging.list_cut import cut_lists
from kaiza.domain.plans.plan import PlanUsage
from kaiza.domain.roles import describe_role
from kaiza.tools.view import Answer, WorkspaceView


def session_counts(session: Session) -> dict[str, int]:
    """Counts of the session so far, without this call."""
    return {"calls": session.calls, "changes": session.changes, "refusals": session.refusals}


def run(_request: object, view: WorkspaceView) -> Answer:
    """Return role, state, counts and plan usage."""
    session, audit_state = view.session, view.audit_state
    # While the log is being read, usage is not known: null, and not a list that looks complete.
    used = None if audit_state.is_partial else sorted(audit_state.usage.items())
    state, counts = audit_state.find_role_state(session.role), session_counts(session)
    output: dict[str, Any] = {
        "session_id": session.session_id,
        "role": describe_role(session.role),
        "state": state,
        "counts": counts,
        "plan_use": used and [_describe_usage(plan_id, usage, view) for plan_id, usage in used],
        "summary": f"{state or 'The log is still being read'}: {counts['calls']} calls, {counts['changes']} changes, "
        f"{counts['refusals']} refusals.",
    }
    lock = audit_state.locks.get(session.role)
    if lock:
        members = ("error_code", "request_id", "seq", "at")
        output["locked_by"] = {name: getattr(lock, name) for name in members}
    return Answer(cut_lists(output, view.caps, "Not all plans are listed: kaiza status has them."))


def _describe_usage(plan_id: str, usage: PlanUsage, view: WorkspaceView) -> dict[str, Any]:
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
