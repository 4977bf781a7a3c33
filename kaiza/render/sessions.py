"""Sessions for people: a list, and what one of them changed and was refused."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kaiza.domain.roles import describe_role
from kaiza.render.tables import Cell, Column, render_table
from kaiza.render.terminal import escape, escape_name, format_minute

_LIST_COLUMNS = (
    Column("session"),
    Column("role"),
    Column("state"),
    Column("begun UTC", moves_below=True),
    Column("last call UTC", moves_below=True),
    Column("calls", moves_below=True, align_right=True),
    Column("changes", moves_below=True, align_right=True),
    Column("refused", moves_below=True, align_right=True),
    Column("client", moves_below=True),
)
TOKEN_COLUMN = Column("token", moves_below=True)
"""Whose token began the session over HTTP."""
_CHANGE_COLUMNS = (
    Column("seq", align_right=True),
    Column("operation"),
    Column("lines"),
    Column("path", min_width=12, is_whole=True),
)
_REFUSAL_COLUMNS = (
    Column("seq", align_right=True),
    Column("tool"),
    Column("code"),
    Column("path", min_width=12, is_whole=True),
)
_STYLES = {"active": "green", "locked": "red"}


def render_list(sessions: Iterable[Mapping[str, Any]], width: int | None, *, colour: bool = False) -> Iterator[str]:
    """One row for each session of `session list --json`."""
    rows = list(sessions)
    # Most workspaces have no session over HTTP, and then no token to show.
    has_token = any(session["principal"] for session in rows)
    columns = (*_LIST_COLUMNS, TOKEN_COLUMN) if has_token else _LIST_COLUMNS
    return render_table(columns, (_session_row(row)[: len(columns)] for row in rows), width, colour=colour)


def render_changes(changes: Iterable[Mapping[str, Any]], width: int | None, *, colour: bool = False) -> Iterator[str]:
    """One row for each file that a session changed."""
    return render_table(_CHANGE_COLUMNS, map(_change_row, changes), width, colour=colour)


def render_refusals(refusals: Iterable[Mapping[str, Any]], width: int | None, *, colour: bool = False) -> Iterator[str]:
    """One row for each call that was refused."""
    return render_table(_REFUSAL_COLUMNS, map(_refusal_row, refusals), width, colour=colour)


def _session_row(session: Mapping[str, Any]) -> tuple[Cell, ...]:
    counts, state = session["counts"], session["state"]
    return (
        Cell(escape(session["session_id"]), "bold"),
        Cell(escape(describe_role(session["role"]))),
        Cell(state, _STYLES.get(state, "dim")),
        Cell(format_minute(session["begun_at"]), "dim"),
        Cell(format_minute(session["last_call_at"]), "dim"),
        Cell(str(counts["calls"])),
        Cell(str(counts["changes"])),
        Cell(str(counts["refusals"]), "red" if counts["refusals"] else ""),
        Cell(escape(session["client"] or "")),
        Cell(escape(session["principal"] or "")),
    )


def _change_row(change: Mapping[str, Any]) -> tuple[Cell, ...]:
    source = f"{escape_name(change['source'])} → " if change["source"] else ""
    return (
        Cell(str(change["seq"]), "dim"),
        Cell(escape(str(change["operation"]))),
        Cell(f"+{change['lines_added'] or 0} -{change['lines_removed'] or 0}"),
        Cell(f"{source}{escape_name(change['path'])}"),
    )


def _refusal_row(refusal: Mapping[str, Any]) -> tuple[Cell, ...]:
    paths = refusal["paths"]
    return (
        Cell(str(refusal["seq"]), "dim"),
        Cell(escape(str(refusal["tool_name"]))),
        Cell(escape(str(refusal["error_code"])), "red"),
        Cell(escape_name(paths[0]) if paths else ""),
    )
