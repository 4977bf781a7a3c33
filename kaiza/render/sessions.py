"""Sessions as the record tells them, ended ones too: a fold over its records, and how it is shown."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kaiza.render.record_timeline import recorded_paths
from kaiza.render.tables import Cell, Column, render_table
from kaiza.render.terminal import escape

_LIST_COLUMNS = (
    Column("session", min_width=8),
    Column("role", min_width=4),
    Column("state"),
    Column("begun"),
    Column("last call"),
    Column("calls", align_right=True),
    Column("changes", align_right=True),
    Column("refused", align_right=True),
    Column("client", min_width=6),
)
_CHANGE_COLUMNS = (
    Column("seq", align_right=True),
    Column("operation"),
    Column("lines"),
    Column("path", min_width=12, kept_end="end"),
)
_REFUSAL_COLUMNS = (
    Column("seq", align_right=True),
    Column("tool"),
    Column("path", min_width=12, kept_end="end"),
    Column("code"),
)
_STYLES = {"active": "green", "locked": "red"}
_CHANGE_MEMBERS = ("path", "source", "operation", "before_hash", "after_hash", "lines_added", "lines_removed")


@dataclass(slots=True)
class SessionSummary:
    """What the records say about one session."""

    session_id: str
    role: str | None
    client: str | None
    begun_at: str
    last_call_at: str
    ended_at: str | None = None
    calls: int = 0
    change_count: int = 0
    refusal_count: int = 0
    changes: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[dict[str, Any]] = field(default_factory=list)

    def state(self, locked: Container[str | None], oldest: str) -> str:
        """How the session stands, given the locked roles and since when a session must have been used."""
        if self.ended_at is not None:
            return "ended"
        if self.last_call_at < oldest:
            return "expired"
        return "locked" if self.role in locked else "active"

    def as_json(self, state: str) -> dict[str, Any]:
        """The session as `session list --json` tells it."""
        return {
            "session_id": self.session_id,
            "role": self.role,
            "state": state,
            "client": self.client,
            "begun_at": self.begun_at,
            "last_call_at": self.last_call_at,
            "ended_at": self.ended_at,
            "counts": {"calls": self.calls, "changes": self.change_count, "refusals": self.refusal_count},
        }


class SessionProjection:
    """Takes records in, in their order; keeps what was done and refused only of sessions it is asked to."""

    def __init__(self, detailed: str | None = None) -> None:
        self.sessions: dict[str, SessionSummary] = {}
        self._detailed_id = detailed

    def apply(self, record: Mapping[str, Any]) -> None:
        """The next record of the log."""
        if record.get("kind") != "call":
            return
        session_id, ok = record.get("session_id"), record.get("outcome") == "ok"
        if not isinstance(session_id, str):
            return
        if record.get("tool_name") == "begin_session" and ok:
            self.sessions[session_id] = _new_summary(record)
        told = self.sessions.get(session_id)
        if told is not None:
            self._count_call(told, record, ok=ok)

    def _count_call(self, told: SessionSummary, record: Mapping[str, Any], *, ok: bool) -> None:
        changes = list(record.get("changes") or ()) if ok else []
        told.calls += 1
        told.change_count += len(changes)
        told.refusal_count += 0 if ok else 1
        told.last_call_at = max(told.last_call_at, str(record.get("timestamp")))
        if record.get("tool_name") == "end_session" and ok:
            told.ended_at = record.get("timestamp")
        if self._detailed_id is not None and told.session_id.startswith(self._detailed_id):
            told.changes += [{"seq": record.get("seq"), **_change_members(one)} for one in changes]
            told.refusals += [] if ok else [_refusal_members(record)]


def render_list(
    told: Iterable[tuple[SessionSummary, str]], width: int | None, *, colour: bool = False
) -> Iterator[str]:
    """Sessions with their states, a line each."""
    return render_table(_LIST_COLUMNS, (_session_row(one, state) for one, state in told), width, colour=colour)


def render_changes(told: SessionSummary, width: int | None, *, colour: bool = False) -> Iterator[str]:
    """What a session changed, a line for each file."""
    return render_table(_CHANGE_COLUMNS, map(_change_row, told.changes), width, colour=colour)


def render_refusals(told: SessionSummary, width: int | None, *, colour: bool = False) -> Iterator[str]:
    """What a session was refused, a line for each call."""
    return render_table(_REFUSAL_COLUMNS, map(_refusal_row, told.refusals), width, colour=colour)


def _new_summary(record: Mapping[str, Any]) -> SessionSummary:
    at = str(record.get("timestamp"))
    return SessionSummary(str(record["session_id"]), record.get("role"), record.get("client"), at, at)


def _change_members(change: Mapping[str, Any]) -> dict[str, Any]:
    return {name: change.get(name) for name in _CHANGE_MEMBERS}


def _refusal_members(record: Mapping[str, Any]) -> dict[str, Any]:
    members = ("seq", "tool_name", "error_code", "human_message")
    return {**{name: record.get(name) for name in members}, "paths": list(recorded_paths(record))}


def _session_row(told: SessionSummary, state: str) -> tuple[Cell, ...]:
    return (
        Cell(escape(told.session_id), "bold"),
        Cell(escape(told.role or "")),
        Cell(state, _STYLES.get(state, "dim")),
        Cell(_format_minute(told.begun_at), "dim"),
        Cell(_format_minute(told.last_call_at), "dim"),
        Cell(str(told.calls)),
        Cell(str(told.change_count)),
        Cell(str(told.refusal_count), "red" if told.refusal_count else ""),
        Cell(escape(told.client or "")),
    )


def _change_row(change: Mapping[str, Any]) -> tuple[Cell, ...]:
    source = f"{change['source']} → " if change["source"] else ""
    return (
        Cell(str(change["seq"]), "dim"),
        Cell(escape(str(change["operation"]))),
        Cell(f"+{change['lines_added'] or 0} -{change['lines_removed'] or 0}"),
        Cell(escape(f"{source}{change['path']}")),
    )


def _refusal_row(refusal: Mapping[str, Any]) -> tuple[Cell, ...]:
    where = refusal["paths"]
    return (
        Cell(str(refusal["seq"]), "dim"),
        Cell(escape(str(refusal["tool_name"]))),
        Cell(escape(where[0]) if where else ""),
        Cell(escape(str(refusal["error_code"])), "red"),
    )


def _format_minute(timestamp: str) -> str:
    return escape(timestamp[:16].replace("T", " "))
