"""Sessions as the log shows them, ended ones included: counts, state, changes and refusals."""

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from kaiza.domain.audit.projection import AuditState
from kaiza.domain.audit.record import Record, is_complete, is_well_formed
from kaiza.domain.audit.record_folding import apply_record, revoked_principal
from kaiza.domain.audit.recorded_names import recorded_paths
from kaiza.domain.caps import Caps
from kaiza.domain.timestamps import format_timestamp
from kaiza.queries.audit_log import Progress, last_record, read_forward
from kaiza.store.disk.process_liveness import find_served, is_idle

_CHANGE_MEMBERS = ("path", "source", "operation", "before_hash", "after_hash", "lines_added", "lines_removed")
_OPEN_STATES = ("active", "locked")
_REFUSAL_MEMBERS = ("seq", "tool_name", "error_code", "human_message")


@dataclass(slots=True)
class SessionSummary:
    """What the log says about one session."""

    session_id: str
    role: str | None
    client: str | None
    principal: str | None
    begun_at: str
    last_call_at: str
    ended_at: str | None = None
    live: str | None = None
    """Id under which the server that began it lists its sessions; None if it does not."""
    state: str = ""
    calls: int = 0
    change_count: int = 0
    refusal_count: int = 0
    changes: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The session as `session list --json` prints it."""
        return {
            "session_id": self.session_id,
            "role": self.role,
            "state": self.state,
            "client": self.client,
            "principal": self.principal,
            "begun_at": self.begun_at,
            "last_call_at": self.last_call_at,
            "ended_at": self.ended_at,
            "counts": {"calls": self.calls, "changes": self.change_count, "refusals": self.refusal_count},
        }


class SessionProjection:
    """Projects records, oldest first, to session summaries; changes and refusals only of `detailed` sessions."""

    def __init__(self, detailed: str | None = None) -> None:
        self.sessions: dict[str, SessionSummary] = {}
        self._detailed_id = detailed

    def apply(self, record: Record) -> None:
        """Take in the next record of the log."""
        if record.kind not in ("call", "person") or not is_well_formed(record):
            return
        if record.kind == "person":
            principal = revoked_principal(record)
            for session in self.sessions.values():
                if principal is not None and session.principal == principal and session.ended_at is None:
                    session.ended_at = record.timestamp
        elif record.session_id is not None:
            if record.tool_name == "begin_session" and record.outcome == "ok":
                self.sessions[record.session_id] = _new_summary(record, record.session_id)
            if record.session_id in self.sessions:
                self._count_call(self.sessions[record.session_id], record)

    def _count_call(self, session: SessionSummary, record: Record) -> None:
        ok = record.outcome == "ok"
        changes = record.changes if ok else ()
        session.calls += 1
        session.change_count += len(changes)
        session.refusal_count += 0 if ok else 1
        session.last_call_at = max(session.last_call_at, record.timestamp)
        if record.tool_name == "end_session" and ok:
            session.ended_at = record.timestamp
        if self._detailed_id is None or not session.session_id.startswith(self._detailed_id):
            return
        for change in changes:
            session.changes.append({"seq": record.seq, **{name: change.get(name) for name in _CHANGE_MEMBERS}})
        if not ok:
            refusal = {name: record.members.get(name) for name in _REFUSAL_MEMBERS}
            session.refusals.append({**refusal, "paths": list(recorded_paths(record))})


def read_sessions(root: str, detailed: str | None, progress: Progress) -> list[SessionSummary]:
    """Every session in the log; changes and refusals only of those whose id begins with `detailed`."""
    last = last_record(root)
    total = last.seq if last else 0
    return summarize_sessions(read_forward(root), detailed, lambda seq: progress(seq, total), find_served(root))


def summarize_sessions(
    records: Iterable[Record],
    detailed: str | None,
    progress: Callable[[int], None],
    served: Container[str] | None = None,
) -> list[SessionSummary]:
    """Every session with its state now, from one pass over the log; `progress` gets each record's number.

    `served` are the sessions that running servers have; None if that is not known.
    """
    projection, audit_state = SessionProjection(detailed), AuditState()
    for record in records:
        projection.apply(record)
        if is_complete(record):
            apply_record(audit_state, record)
        progress(record.seq)
    since = format_timestamp(datetime.now(UTC) - timedelta(hours=Caps().session_idle_hours))
    sessions = list(projection.sessions.values())
    for session in sessions:
        # The times of a deterministic log do not show how long a session was idle.
        session.state = _session_state(session, audit_state.locks, "" if audit_state.is_deterministic else since)
        if session.state in _OPEN_STATES and is_idle(session.session_id, session.live, served):
            session.state = "idle"
    return sessions


def _session_state(session: SessionSummary, locked_roles: Container[str | None], since: str) -> str:
    if session.ended_at is not None:
        return "ended"
    if session.last_call_at < since:
        return "expired"
    return "locked" if session.role in locked_roles else "active"


def _new_summary(record: Record, session_id: str) -> SessionSummary:
    at, live = record.timestamp, record.detail.get("live")
    return SessionSummary(
        session_id=session_id,
        role=record.role,
        client=record.client,
        principal=record.principal,
        begun_at=at,
        last_call_at=at,
        live=live if isinstance(live, str) else None,
    )
