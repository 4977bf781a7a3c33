"""`kaiza status`: one screen that says how the workspace stands."""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from kaiza.cli import options, plan_list, say, session_unlock, standing, thaw
from kaiza.domain.caps import Caps
from kaiza.domain.session import Session
from kaiza.render import plans
from kaiza.render.terminal import escape
from kaiza.store import persons_word
from kaiza.store.ground import Ground

_SHOWN = 10
_WORTH_SHOWING = ("APPROVED", "DRAFT")


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    options.describe(
        parser,
        "How the workspace stands: the record, a freeze, locks, open sessions, plans and what was used of them,\n"
        "changes under way. The record is judged as far as it is new; kaiza audit verify judges all of it.\n"
        "Exit status: 0 told, 1 the record is damaged, so that nothing may be changed.",
        "kaiza status",
        run=_status,
    )
    options.workspace(parser)
    options.as_json(parser)


def _status(args: argparse.Namespace) -> int:
    with standing.ground(args) as ground:
        told = _told(ground)
        if args.json:
            say.document(told)
        else:
            say.lines(_shown(ground, told))
        return say.YES if ground.damage() is None else say.NO


def _told(ground: Ground) -> dict[str, Any]:
    facts, head, now = ground.facts, ground.log.head, persons_word.now()
    idle = Caps().session_idle_hours
    sessions = [one for one in facts.sessions.values() if facts.open_session(one.session_id, now, idle)]
    return {
        "workspace": ground.root,
        "record": {
            "verdict": ground.damage() or "intact",
            "records": head.seq if head else 0,
            "head": {"seq": head.seq, "entry_hash": head.entry_hash} if head else None,
        },
        "frozen": asdict(facts.frozen) if facts.frozen else None,
        "locks": [asdict(lock) for lock in facts.locks.values()],
        "sessions": [_session(ground, one) for one in sessions],
        "plans": plan_list.every(ground),
        "intents": [
            {"request_id": request_id, "seq": intent["seq"], "paths": [one["path"] for one in intent["changes"]]}
            for request_id, intent in facts.intents.items()
        ],
    }


def _session(ground: Ground, session: Session) -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "role": session.role,
        "state": "locked" if session.role in ground.facts.locks else "active",
        "client": session.client,
        "last_call_at": session.last_call_at,
        "counts": {"calls": session.calls, "changes": session.changes, "refusals": session.refusals},
    }


def _shown(ground: Ground, told: Mapping[str, Any]) -> Iterator[str]:
    colour, facts = say.colour(), ground.facts
    record = told["record"]
    yield f"workspace  {escape(told['workspace'])}"
    yield f"record     {record['verdict']}, {record['records']:,} records"
    yield f"changes    {_changes(ground)}"
    if facts.frozen:
        yield from plans.headed("Frozen", [thaw.told(facts.frozen), "Lift it with: kaiza thaw"], colour=colour)
    locks = [line for lock in facts.locks.values() for line in session_unlock.told(lock)]
    if locks:
        locks.append("Unlock with: kaiza session unlock")
    yield from plans.headed("Locked", locks, colour=colour)
    yield from plans.headed("Open sessions", _some(map(_session_line, told["sessions"])), colour=colour)
    shown = [one for one in told["plans"] if one["status"] in _WORTH_SHOWING]
    if shown:
        rows = _some(plans.listed(shown, None if say.width() is None else (say.width() or 0) - 2), _SHOWN + 1)
        yield from plans.headed("Plans", rows, colour=colour)
    under_way = [f"record {one['seq']}: {', '.join(map(escape, one['paths'][:3]))}" for one in told["intents"]]
    yield from plans.headed("Changes under way, or left by a crash", _some(iter(under_way)), colour=colour)


def _changes(ground: Ground) -> str:
    """Whether anything may be changed at all."""
    damage, facts = ground.damage(), ground.facts
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


def _some(rows: Iterator[str], most: int = _SHOWN) -> list[str]:
    """The first rows; how many there are more."""
    told = list(rows)
    return told if len(told) <= most else [*told[:most], f"… and {len(told) - most} more"]
