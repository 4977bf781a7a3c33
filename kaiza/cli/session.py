"""`kaiza session`: what agents did, session by session, from the record."""

import argparse
from datetime import UTC, datetime, timedelta

from kaiza.cli import log, options, place, say, session_unlock
from kaiza.domain.caps import Caps
from kaiza.domain.record import FIELDS
from kaiza.domain.record_folding import apply_record
from kaiza.domain.session import Facts
from kaiza.render import sessions
from kaiza.render.sessions import Fold, Told
from kaiza.render.terminal import escape

_COMPLETE = frozenset(FIELDS)


def add(parser: argparse.ArgumentParser) -> None:
    """The commands about sessions."""
    commands = options.group(parser, "What agents did, session by session.", "kaiza session list")
    listed = commands.add_parser("list", help="every session, the newest last", allow_abbrev=False)
    options.describe(
        listed,
        "Every session in the record, the newest last: active, locked, ended, or expired after 12 hours unused.",
        "kaiza session list",
        run=_list,
    )
    shown = commands.add_parser("show", help="one session: what it changed, what it was refused", allow_abbrev=False)
    options.describe(
        shown,
        "One session: how it stands, what it changed, what it was refused.\n"
        "Exit status: 0 shown, 1 there is no such session, or several begin like that.",
        "kaiza session show 3f2b",
        run=_show,
    )
    shown.add_argument("session", metavar="ID", help="the session's id; its first characters are enough")
    session_unlock.add(commands)
    for part in (listed, shown):
        options.workspace(part)
        options.as_json(part)


def _list(args: argparse.Namespace) -> int:
    found = _told(args, None)
    if args.json:
        say.document({"sessions": [one.as_json(state) for one, state in found]})
    elif found:
        say.lines(sessions.listed(found, say.width(), colour=say.colour()))
    else:
        say.note("No session has begun here yet.")
    return say.YES


def _show(args: argparse.Namespace) -> int:
    found = [pair for pair in _told(args, args.session) if pair[0].session_id.startswith(args.session)]
    if len(found) != 1:
        what = "Several sessions begin" if found else "No session begins"
        raise say.Stop(f"{what} with {args.session!r}. `kaiza session list` shows them all.", say.NO)
    told, state = found[0]
    if args.json:
        say.document({**told.as_json(state), "changes": told.changes, "refusals": told.refusals})
    else:
        _print(told, state)
    return say.YES


def _print(told: Told, state: str) -> None:
    document = told.as_json(state)
    counts = document.pop("counts")
    say.lines(say.fields([*document.items(), *counts.items()]))
    if told.changes:
        say.lines(["", "What it changed:", *sessions.changed(told, say.width(), colour=say.colour())])
    if told.refusals:
        say.lines(["", "What it was refused:", *sessions.refused(told, say.width(), colour=say.colour())])
    say.lines(["", f"Every call: kaiza audit show --session {escape(told.session_id)}"])


def _told(args: argparse.Namespace, detailed: str | None) -> list[tuple[Told, str]]:
    """Every session with its state, by reading the record once."""
    root, fold, facts = place.workspace(args), Fold(detailed), Facts()
    last = next(log.backward(root), None)
    with say.Progress("reading") as progress:
        for record in log.forward(root):
            fold.apply(record)
            if record.keys() >= _COMPLETE:
                apply_record(facts, record)
            progress(record["seq"], last["seq"] if last else 0)
    oldest = datetime.now(UTC) - timedelta(hours=Caps().session_idle_hours)
    since = oldest.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return [(one, one.state(facts.locks, since)) for one in fold.sessions.values()]
