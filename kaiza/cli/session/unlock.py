"""`kaiza session unlock`: let a role change files again after a refusal locked it."""

import argparse
from collections.abc import Iterator

from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import confirm
from kaiza.cli.console.id_prefix import resolve_id
from kaiza.cli.console.open_workspace import open_workspace
from kaiza.decisions import unlock
from kaiza.domain.audit.projection import RoleLock
from kaiza.domain.refusal import RefusedError
from kaiza.domain.roles import describe_role
from kaiza.queries.workspaces import find_person_name
from kaiza.render.terminal import escape, format_time


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("unlock", help="let a locked role change files again")
    arguments.describe(
        parser,
        "Let a role change files again after a refusal locked it. Shows why it was locked, and asks you to confirm at "
        "the terminal.\n"
        "Exit status: 0 unlocked, 1 not unlocked or nothing is locked, 3 no terminal to ask at.",
        "kaiza session unlock\nkaiza session unlock --role executor",
        run=_run_unlock,
    )
    target = parser.add_mutually_exclusive_group()
    target.add_argument(
        "session",
        metavar="ID",
        nargs="?",
        help="unlock the role of this session; its first characters are enough (default: every role)",
    )
    arguments.add_role(target, "unlock this role")
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_unlock(args: argparse.Namespace) -> int:
    name = find_person_name(args.name)
    with open_workspace(args) as workspace:
        role = args.role
        if args.session:
            # Of sessions that have ended, only those whose refusal locked their role.
            state = workspace.audit_state
            roles_by_id = {session.session_id: session.role for session in state.sessions.values()}
            roles_by_id |= {lock.session_id: lock.role for lock in state.locks.values() if lock.session_id}
            role = roles_by_id[resolve_id(roles_by_id, args.session, "open session", "`kaiza status` lists them.")]
        proposal = unlock.propose(workspace, role)
        facts = [line for lock in proposal.locks for line in describe_lock(lock)]
        facts.append(f"{escape(name)} unlocks this.")
        if not confirm("\n".join(facts), "Unlock?", word="unlock" if workspace.settings.confirm_by_word else None):
            raise RefusedError("Cancelled. Nothing was unlocked.")
        unlocked = unlock.decide(workspace, proposal, name)
    if args.json:
        output.print_json({"unlocked": unlocked.roles})
    else:
        output.print_lines([f"Unlocked: {escape(', '.join(describe_role(role) for role in unlocked.roles))}."])
    return output.SUCCESS


def describe_lock(lock: RoleLock) -> Iterator[str]:
    """Why a role is locked, and the command that shows the refused call."""
    yield f"The {escape(describe_role(lock.role))} is locked since {format_time(lock.at)}: {escape(lock.error_code)}"
    yield f"  Refused call: kaiza audit show {lock.seq}"
