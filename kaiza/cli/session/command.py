"""`kaiza session`: what agents did, session by session, read from the audit log."""

import argparse

from kaiza.cli.console import arguments, audit_reader, output
from kaiza.cli.console.interrupted import name_interrupted
from kaiza.cli.console.open_workspace import open_workspace, resolve_root
from kaiza.cli.session import unlock
from kaiza.queries.session_summary import SessionSummary, read_sessions
from kaiza.render import sessions
from kaiza.render.terminal import escape, format_time

_TIMES = ("begun_at", "last_call_at", "ended_at")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    commands = arguments.add_group(
        parser, "List sessions and what they did; unlock a role after a refusal.", "kaiza session list"
    )
    list_parser = commands.add_parser("list", help="list sessions, newest last")
    arguments.describe(
        list_parser,
        "List the sessions in the log, newest last: active, locked, idle (no running server has it, but one may "
        "continue it), ended, or expired after 12 hours without a call.",
        "kaiza session list",
        run=_run_list,
    )
    show_parser = commands.add_parser("show", help="show what one session changed and was refused")
    arguments.describe(
        show_parser,
        "Show one session: its state, what it changed and what it was refused.\n"
        "Exit status: 0 shown, 1 no such session or several that begin like that.",
        "kaiza session show 3f2b",
        run=_run_show,
    )
    show_parser.add_argument("session", metavar="ID", help="the session's id; its first characters are enough")
    unlock.add(commands)
    for part in (list_parser, show_parser):
        arguments.add_workspace(part)
        arguments.add_json(part)


def _run_list(args: argparse.Namespace) -> int:
    listed = [session.as_json() for session in _read_sessions(args, None)]
    if args.json:
        output.print_json({"sessions": listed})
    elif listed:
        output.print_lines(sessions.render_list(listed, output.terminal_width(), colour=output.has_colour()))
    else:
        output.print_error("No session has begun here yet.")
    return output.SUCCESS


def _run_show(args: argparse.Namespace) -> int:
    sessions_by_id = {session.session_id: session for session in _read_sessions(args, args.session)}
    session = sessions_by_id[audit_reader.resolve_session(sessions_by_id, args.session)]
    with open_workspace(args) as workspace:
        name_interrupted(workspace)
    if args.json:
        output.print_json({**session.as_json(), "changes": session.changes, "refusals": session.refusals})
    else:
        _print_session(session)
    return output.SUCCESS


def _print_session(session: SessionSummary) -> None:
    fields = session.as_json()
    counts = fields.pop("counts")
    fields |= {name: format_time(fields[name]) for name in _TIMES if fields[name]}
    output.print_lines(output.format_fields([*fields.items(), *counts.items()]))
    width, colour = output.terminal_width(), output.has_colour()
    if session.changes:
        output.print_lines(["", "Changes:", *sessions.render_changes(session.changes, width, colour=colour)])
    if session.refusals:
        output.print_lines(["", "Refusals:", *sessions.render_refusals(session.refusals, width, colour=colour)])
    output.print_lines(["", "Every call:", f"  kaiza audit show --session {escape(session.session_id)}"])


def _read_sessions(args: argparse.Namespace, detailed: str | None) -> list[SessionSummary]:
    with output.Progress("reading") as progress:
        return read_sessions(resolve_root(args), detailed, progress)
