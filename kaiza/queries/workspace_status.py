"""The state of a workspace on one page: log, freeze, locks, open sessions, plans, unfinished changes."""

from collections.abc import Container
from dataclasses import asdict
from typing import Any

from kaiza.clock import current_timestamp
from kaiza.domain.audit.deterministic import counted_timestamp
from kaiza.domain.audit.projection import Session
from kaiza.domain.caps import Caps
from kaiza.queries.plan_review import describe_unlisted, list_plans
from kaiza.queries.trust_summary import summarize_trust
from kaiza.store.disk.served_sessions import find_served, is_idle
from kaiza.store.workspace import Workspace


def workspace_status(workspace: Workspace) -> dict[str, Any]:
    """What `kaiza status --json` prints."""
    state, head, now = workspace.audit_state, workspace.log.head, current_timestamp()
    if state.is_deterministic:  # its times do not show how long a session was idle
        now = counted_timestamp(head.seq if head else 0)
    idle = Caps().session_idle_hours
    sessions = [
        session for session in state.sessions.values() if state.find_open_session(session.session_id, now, idle)
    ]
    served = find_served(workspace.root)
    return {
        "workspace": workspace.root,
        "standing": workspace.binding.standing.value,
        "record": {
            "verdict": workspace.damage() or "intact",
            "records": head.seq if head else 0,
            "head": {"seq": head.seq, "entry_hash": head.entry_hash} if head else None,
        },
        "states": len(state.states),
        "settings": [
            {"key": setting.key, "value": setting.value, "from": setting.places}
            for setting in workspace.settings_layers.list_in_force()
        ],
        "unadopted_settings": list_unadopted(workspace),
        "frozen": asdict(state.frozen) if state.frozen else None,
        "locks": [asdict(lock) for lock in state.locks.values()],
        "sessions": [_session_members(workspace, session, served) for session in sessions],
        "plans": list_plans(workspace),
        "unlisted_plans": describe_unlisted(workspace),
        "trust": summarize_trust(workspace.root),
        "intents": [
            {"request_id": request_id, "seq": intent.seq, "paths": [change["path"] for change in intent.changes]}
            for request_id, intent in state.intents.items()
        ],
    }


def list_unadopted(workspace: Workspace) -> list[dict[str, Any]]:
    """Values of `kaiza.toml` that count only once a person has adopted them."""
    return [
        {"key": setting.key, "value": setting.wanted, "in_force": setting.in_force}
        for setting in workspace.settings_layers.list_loosening()
    ]


def _session_members(workspace: Workspace, session: Session, served: Container[str] | None) -> dict[str, Any]:
    state = "locked" if session.role in workspace.audit_state.locks else "active"
    return {
        "session_id": session.session_id,
        "role": session.role,
        "state": "idle" if is_idle(session.session_id, session.live, served) else state,
        "client": session.client,
        "principal": session.principal,
        "last_call_at": session.last_call_at,
        "counts": {"calls": session.calls, "changes": session.changes, "refusals": session.refusals},
    }
