"""`kaiza session`: what agents did, session by session, from the record."""

import argparse
from datetime import UTC, datetime, timedelta

from kaiza.cli.console import arguments, audit_reader, output
from kaiza.cli.session import unlock
from kaiza.domain.audit.projection import AuditState
from kaiza.domain.audit.record import FIELDS
from kaiza.domain.audit.record_folding import apply_record
from kaiza.domain.caps import Caps
from kaiza.render import sessions
from kaiza.render.sessions import SessionProjection, SessionSummary
from kaiza.render.terminal import escape

_ALL_FIELDS = frozenset(FIELDS)


def add(parser: argparse.ArgumentParser) -> None:
    """The commands about sessions."""
    commands = arguments.add_group(parser, "What agents did, session by session.", "kaiza session list")
    listed = commands.add_parser("list", help="every session, the newest last", allow_abbrev=False)
    arguments.describe(
        listed,
        "Every session in the record, the newest last: active, locked, ended, or expired after 12 hours unused.",
        "kaiza session list",
        run=_run_list,
    )
    shown = commands.add_parser("show", help="one session: what it changed, what it was refused", allow_abbrev=False)
    arguments.describe(
        shown,
        "One session: how it stands, what it changed, what it was refused.\n"
        "Exit status: 0 shown, 1 there is no such session, or several begin like that.",
        "kaiza session show 3f2b",
        run=_run_show,
    )
    shown.add_argument("session", metavar="ID", help="the session's id; its first characters are enough")
    unlock.add(commands)
    for part in (listed, shown):
        arguments.add_workspace(part)
        arguments.add_json(part)


def _run_list(args: argparse.Namespace) -> int:
    found = _read_sessions(args, None)
    if args.json:
        output.print_json({"sessions": [one.as_json(state) for one, state in found]})
    elif found:
        output.print_lines(sessions.render_list(found, output.terminal_width(), colour=output.has_colour()))
    else:
        output.print_error("No session has begun here yet.")
    return output.SUCCESS


def _run_show(args: argparse.Namespace) -> int:
    found = [pair for pair in _read_sessions(args, args.session) if pair[0].session_id.startswith(args.session)]
    if len(found) != 1:
        what = "Several sessions begin" if found else "No session begins"
        raise output.CommandError(f"{what} with {args.session!r}. `kaiza session list` shows them all.", output.FAILURE)
    told, state = found[0]
    if args.json:
        output.print_json({**told.as_json(state), "changes": told.changes, "refusals": told.refusals})
    else:
        _print_session(told, state)
    return output.SUCCESS


def _print_session(told: SessionSummary, state: str) -> None:
    document = told.as_json(state)
    counts = document.pop("counts")
    output.print_lines(output.format_fields([*document.items(), *counts.items()]))
    if told.changes:
        output.print_lines(
            [
                "",
                "What it changed:",
                *sessions.render_changes(told, output.terminal_width(), colour=output.has_colour()),
            ]
        )
    if told.refusals:
        output.print_lines(
            [
                "",
                "What it was refused:",
                *sessions.render_refusals(told, output.terminal_width(), colour=output.has_colour()),
            ]
        )
    output.print_lines(["", f"Every call: kaiza audit show --session {escape(told.session_id)}"])


def _read_sessions(args: argparse.Namespace, detailed: str | None) -> list[tuple[SessionSummary, str]]:
    """Every session with its state, by reading the record once."""
    root, fold, facts = arguments.resolve_root(args), SessionProjection(detailed), AuditState()
    last = next(audit_reader.read_backward(root), None)
    with output.Progress("reading") as progress:
        for record in audit_reader.read_forward(root):
            fold.apply(record)
            if record.keys() >= _ALL_FIELDS:
                apply_record(facts, record)
            progress(record["seq"], last["seq"] if last else 0)
    oldest = datetime.now(UTC) - timedelta(hours=Caps().session_idle_hours)
    since = oldest.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return [(one, one.state(facts.locks, since)) for one in fold.sessions.values()]
