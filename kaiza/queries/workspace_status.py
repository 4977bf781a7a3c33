"""The state of a workspace on one page: log, freeze, locks, open sessions, plans, unfinished changes.

Also what came with a workspace from elsewhere: its records, where they were written, and its plans.
"""

from collections import Counter
from collections.abc import Container
from dataclasses import asdict
from itertools import islice
from typing import Any

from kaiza.clock import current_timestamp
from kaiza.domain.audit.deterministic import counted_timestamp
from kaiza.domain.audit.projection import Session
from kaiza.domain.caps import Caps
from kaiza.queries.plan_review import describe_unlisted, list_plans
from kaiza.queries.trust_summary import summarize_trust
from kaiza.store.audit.reader import read_records
from kaiza.store.audit.verification.verify import NO_RECORDS, verdict_output, verify_log
from kaiza.store.config.settings_layers import DEFAULT
from kaiza.store.disk.process_liveness import find_served, is_idle
from kaiza.store.workspace import Workspace

__all__ = ["DEFAULT", "list_unadopted", "workspace_status"]

_MAX_ROOTS = 5
_MAX_READ = 10_000


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


def describe_arrival(workspace: Workspace) -> dict[str, Any]:
    """What `kaiza adopt --show --json` prints. Verifies the whole log."""
    # Without a record or a mark there is no log to verify, and none is missed.
    has_log = workspace.log.head is not None or workspace.damage() is not None
    plans = list_plans(workspace)
    state, head = workspace.audit_state, workspace.log.head
    try:
        journals = workspace.count_journals()
    except OSError:
        journals = 0  # what cannot be read is not used either
    return {
        "workspace": workspace.root,
        "standing": workspace.binding.standing.value,
        "records": head.seq if head else 0,
        "roots": _earlier_roots(workspace),
        "plans": dict(sorted(Counter(plan["status"].lower() for plan in plans).items())),
        "approved": [plan["plan_id"] for plan in plans if plan["status"] == "APPROVED"],
        "settings": list_unadopted(workspace),
        "journals": journals,
        "frozen": state.frozen is not None,
        "locked": sorted(state.locks),
        "withdrawn": sorted(state.withdrawn),
        "log": verdict_output(verify_log(workspace.root) if has_log else NO_RECORDS),
    }


def _earlier_roots(workspace: Workspace) -> list[str]:
    """Other roots that the newest records name, the latest first."""
    roots: dict[str, None] = {}
    for record in islice(read_records(workspace.root, reverse=True), _MAX_READ):
        root = record.workspace_root
        if isinstance(root, str) and root != workspace.root:
            roots[root] = None
        if len(roots) == _MAX_ROOTS:
            break
    return list(roots)
