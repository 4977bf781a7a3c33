"""`kaiza status`: the state of the workspace on one screen."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import open_workspace
from kaiza.cli.session import thaw, unlock
from kaiza.domain.plans.plan import INVALID
from kaiza.domain.roles import describe_role
from kaiza.queries.trust_summary import describe_trust
from kaiza.queries.workspace_status import DEFAULT, workspace_status
from kaiza.queries.workspaces import Workspace
from kaiza.render import log_verdict, plans
from kaiza.render.sessions import TOKEN_COLUMN
from kaiza.render.settings import render_setting, render_unadopted
from kaiza.render.tables import Cell, Column, render_table
from kaiza.render.terminal import INDENT, escape, format_count, wrap

_MAX_ROWS = 10
_MAX_PATHS = 3
_LISTED_STATUSES = ("APPROVED", "DRAFT", INVALID)
_SESSION_COLUMNS = (
    Column("session"),
    Column("role"),
    Column("state"),
    Column("calls", moves_below=True, align_right=True),
    Column("changes", moves_below=True, align_right=True),
    Column("refused", moves_below=True, align_right=True),
    Column("client", moves_below=True),
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "Show the state of the workspace: audit log, freeze, locks, open sessions, plans and how much of their limits "
        "is used, unfinished changes. Only new records are verified; `kaiza audit verify` verifies all of them.\n"
        "Exit status: 0 shown, 1 the audit log is damaged, so that changes are refused.",
        "kaiza status",
        run=_run_status,
    )
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_status(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        status = workspace_status(workspace)
        if args.json:
            output.print_json(status)
        else:
            output.print_lines(_format_lines(workspace, status))
        return output.SUCCESS if workspace.damage() is None else output.FAILURE


def _format_lines(workspace: Workspace, status: Mapping[str, Any]) -> Iterator[str]:
    colour, state = output.has_colour(), workspace.audit_state
    width = output.terminal_width()
    record = status["record"]
    yield from wrap([f"workspace  {escape(status['workspace'])}"], width)
    yield f"log        {record['verdict']}, {format_count(record['records'], 'record')}"
    if status["states"] > 1:
        yield f"           {log_verdict.describe_states(status['states'])}"
    yield f"changes    {_change_permission(workspace)}"
    if record["records"]:
        yield f"review     {_review_command(status['sessions'])}"
    if status["trust"]["merged"] or status["trust"]["signers"]:
        yield from wrap([f"trusted    {describe_trust(status['trust'])}"], width)
    if state.frozen:
        lines = [*thaw.describe_freeze(state.frozen), "Lift it with: kaiza thaw"]
        yield from plans.render_section("Frozen", lines, width, colour=colour)
    locks = [line for lock in state.locks.values() for line in unlock.describe_lock(lock)]
    if locks:
        locks.append("Unlock with: kaiza session unlock")
    yield from plans.render_section("Locked", locks, width, colour=colour)
    settings = [
        render_setting(setting["key"], setting["value"], setting["from"])
        for setting in status["settings"]
        if setting["from"] != [DEFAULT]
    ]
    yield from plans.render_section("Settings", settings, width, colour=colour)
    unadopted = list(render_unadopted(status["unadopted_settings"]))
    yield from plans.render_section("Settings in kaiza.toml that are not adopted", unadopted, width, colour=colour)
    yield from _format_tables(status, width, colour=colour)
    unfinished = []
    for intent in status["intents"][:_MAX_ROWS]:
        paths = (f"{INDENT}{escape(path)}" for path in intent["paths"][:_MAX_PATHS])
        unfinished += [f"record {intent['seq']}", *paths]
    unfinished += _more(status["intents"])
    yield from plans.render_section(
        "Changes in progress, or left unfinished by a crash", unfinished, width, colour=colour
    )


def _format_tables(status: Mapping[str, Any], width: int | None, *, colour: bool) -> Iterator[str]:
    room = None if width is None else width - len(INDENT)
    sessions, listed = status["sessions"], [plan for plan in status["plans"] if plan["status"] in _LISTED_STATUSES]
    if sessions:
        has_token = any(session["principal"] for session in sessions[:_MAX_ROWS])
        columns = (*_SESSION_COLUMNS, TOKEN_COLUMN) if has_token else _SESSION_COLUMNS
        cells = (_session_row(session)[: len(columns)] for session in sessions[:_MAX_ROWS])
        rows = render_table(columns, cells, room, colour=colour)
        yield from plans.render_section("Open sessions", [*rows, *_more(sessions)], colour=colour)
    if listed:
        rows = plans.render_list(listed[:_MAX_ROWS], room, colour=colour)
        unlisted = [status["unlisted_plans"]] if status["unlisted_plans"] else []
        yield from plans.render_section("Plans", [*rows, *_more(listed), *unlisted], colour=colour)


def _change_permission(workspace: Workspace) -> str:
    damage, state = workspace.damage(), workspace.audit_state
    if damage is not None:
        return f"none: the log is damaged ({damage}); run kaiza audit verify"
    if workspace.binding.is_foreign:
        return "none: this workspace came from elsewhere; run kaiza adopt"
    if state.frozen:
        return "none: frozen"
    if state.locks:
        return f"not by the {escape(', '.join(map(describe_role, state.locks)))}: locked"
    return "under approved plans"


def _review_command(sessions: Sequence[Mapping[str, Any]]) -> str:
    """The command that shows the open session with the latest call that changed something, or else the last one."""
    changed = [session for session in sessions if session["counts"]["changes"]]
    latest = max(changed, key=lambda session: str(session["last_call_at"]), default=None)
    return f"kaiza review --session {escape(latest['session_id'])}" if latest else "kaiza review"


def _session_row(session: Mapping[str, Any]) -> tuple[Cell, ...]:
    counts = session["counts"]
    return (
        Cell(escape(session["session_id"]), "bold"),
        Cell(escape(describe_role(session["role"]))),
        Cell(session["state"]),
        Cell(str(counts["calls"])),
        Cell(str(counts["changes"])),
        Cell(str(counts["refusals"])),
        Cell(escape(session["client"] or "")),
        Cell(escape(session["principal"] or "")),
    )


def _more(items: Sequence[object]) -> list[str]:
    return [f"… and {len(items) - _MAX_ROWS} more"] if len(items) > _MAX_ROWS else []
