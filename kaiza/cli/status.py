"""`kaiza status`: one screen that says how the workspace stands."""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from kaiza.cli.console import arguments, open_workspace, output
from kaiza.cli.plan import list_plans
from kaiza.cli.session import thaw, unlock
from kaiza.domain.audit.projection import Session
from kaiza.domain.caps import Caps
from kaiza.render import plans
from kaiza.render.terminal import escape
from kaiza.store import human_decisions
from kaiza.store.workspace import Workspace

_MAX_ROWS = 10
_LISTED_STATUSES = ("APPROVED", "DRAFT")


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    arguments.describe(
        parser,
        "How the workspace stands: the record, a freeze, locks, open sessions, plans and what was used of them,\n"
        "changes under way. The record is judged as far as it is new; kaiza audit verify judges all of it.\n"
        "Exit status: 0 told, 1 the record is damaged, so that nothing may be changed.",
        "kaiza status",
        run=_run_status,
    )
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_status(args: argparse.Namespace) -> int:
    with open_workspace.open_workspace(args) as ground:
        told = _build_document(ground)
        if args.json:
            output.print_json(told)
        else:
            output.print_lines(_format_lines(ground, told))
        return output.SUCCESS if ground.damage() is None else output.FAILURE


def _build_document(ground: Workspace) -> dict[str, Any]:
    facts, head, now = ground.audit_state, ground.log.head, human_decisions.current_timestamp()
    idle = Caps().session_idle_hours
    sessions = [one for one in facts.sessions.values() if facts.find_open_session(one.session_id, now, idle)]
    return {
        "workspace": ground.root,
        "record": {
            "verdict": ground.damage() or "intact",
            "records": head.seq if head else 0,
            "head": {"seq": head.seq, "entry_hash": head.entry_hash} if head else None,
        },
        "frozen": asdict(facts.frozen) if facts.frozen else None,
        "locks": [asdict(lock) for lock in facts.locks.values()],
        "sessions": [_session_document(ground, one) for one in sessions],
        "plans": list_plans.plan_documents(ground),
        "intents": [
            {"request_id": request_id, "seq": intent["seq"], "paths": [one["path"] for one in intent["changes"]]}
            for request_id, intent in facts.intents.items()
        ],
    }


def _session_document(ground: Workspace, session: Session) -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "role": session.role,
        "state": "locked" if session.role in ground.audit_state.locks else "active",
        "client": session.client,
        "last_call_at": session.last_call_at,
        "counts": {"calls": session.calls, "changes": session.changes, "refusals": session.refusals},
    }


def _format_lines(ground: Workspace, told: Mapping[str, Any]) -> Iterator[str]:
    colour, facts = output.has_colour(), ground.audit_state
    record = told["record"]
    yield f"workspace  {escape(told['workspace'])}"
    yield f"record     {record['verdict']}, {record['records']:,} records"
    yield f"changes    {_change_permission(ground)}"
    if facts.frozen:
        yield from plans.render_section(
            "Frozen", [thaw.describe_freeze(facts.frozen), "Lift it with: kaiza thaw"], colour=colour
        )
    locks = [line for lock in facts.locks.values() for line in unlock.describe_lock(lock)]
    if locks:
        locks.append("Unlock with: kaiza session unlock")
    yield from plans.render_section("Locked", locks, colour=colour)
    yield from plans.render_section("Open sessions", _limit_rows(map(_session_line, told["sessions"])), colour=colour)
    shown = [one for one in told["plans"] if one["status"] in _LISTED_STATUSES]
    if shown:
        rows = _limit_rows(
            plans.render_list(shown, None if output.terminal_width() is None else (output.terminal_width() or 0) - 2),
            _MAX_ROWS + 1,
        )
        yield from plans.render_section("Plans", rows, colour=colour)
    under_way = [f"record {one['seq']}: {', '.join(map(escape, one['paths'][:3]))}" for one in told["intents"]]
    yield from plans.render_section(
        "Changes under way, or left by a crash", _limit_rows(iter(under_way)), colour=colour
    )


def _change_permission(ground: Workspace) -> str:
    """Whether anything may be changed at all."""
    damage, facts = ground.damage(), ground.audit_state
    if damage is not None:
        return f"none: the record is damaged ({damage}); see kaiza audit verify"
    if facts.frozen:
        return "none: frozen"
    if facts.locks:
        return f"not by {escape(', '.join(facts.locks))}: locked"
    return "under approved plans"


def _session_line(one: Mapping[str, Any]) -> str:
    counts = one["counts"]
    did = f"{counts['calls']} calls, {counts['changes']} changes, {counts['refusals']} refused"
    client = f" ({escape(one['client'])})" if one["client"] else ""
    return f"{escape(one['session_id'])}  {escape(one['role'])}  {one['state']}  {did}{client}"


def _limit_rows(rows: Iterator[str], most: int = _MAX_ROWS) -> list[str]:
    """The first rows; how many there are more."""
    told = list(rows)
    return told if len(told) <= most else [*told[:most], f"… and {len(told) - most} more"]
