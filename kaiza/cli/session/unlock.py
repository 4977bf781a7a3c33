"""`kaiza session unlock`: after a refusal that locked a role, a person lets it change files again."""

import argparse
from collections.abc import Iterator
from functools import partial

from kaiza.cli.console import arguments, open_workspace, output
from kaiza.cli.console.confirm import confirm_by_typing
from kaiza.domain.audit.projection import ROLES, RoleLock
from kaiza.render.terminal import escape
from kaiza.store import human_decisions
from kaiza.store.workspace import Workspace


def add(commands: arguments.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("unlock", help="let a locked role change files again", allow_abbrev=False)
    arguments.describe(
        parser,
        "After a refusal that locked the workspace for a role: shows why, and asks for your word at the terminal.\n"
        "Exit status: 0 unlocked, 1 not unlocked or nothing is locked, 3 no terminal to ask at.",
        "kaiza session unlock\nkaiza session unlock --role WINDSURF",
        run=_run_unlock,
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("session", metavar="ID", nargs="?", help="unlock the role of this session (default: every role)")
    which.add_argument("--role", choices=ROLES, help="unlock this role")
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_unlock(args: argparse.Namespace) -> int:
    name = arguments.resolve_name(args.name)
    with open_workspace.open_workspace(args) as ground:
        open_workspace.require_sound_log(ground)
        role = args.role or (_session_role(ground, args.session) if args.session else None)
        locks = [lock for lock in ground.audit_state.locks.values() if role in (None, lock.role)]
        if not locks:
            raise output.CommandError(
                f"Nothing is locked{f' for {role}' if role else ''}. Nothing has changed.", output.FAILURE
            )
        if not confirm_by_typing(_confirmation_text(locks, name), "unlock"):
            raise output.CommandError("Nothing was unlocked, and nothing has changed.", output.FAILURE)
        for lock in locks:
            check = partial(_require_same_lock, ground, lock)
            detail = {"seq": lock.seq, "error_code": lock.error_code}
            human_decisions.record_decision(ground, "unlock", name, check, role=lock.role, detail=detail)
    if args.json:
        output.print_json({"unlocked": [lock.role for lock in locks]})
    else:
        output.print_lines([f"Unlocked: {escape(', '.join(lock.role for lock in locks))}."])
    return output.SUCCESS


def _session_role(ground: Workspace, session: str) -> str:
    """The role of the session that begins so."""
    held = {one.session_id: one.role for one in ground.audit_state.sessions.values()}
    held |= {lock.session_id: lock.role for lock in ground.audit_state.locks.values() if lock.session_id}
    roles = [role for session_id, role in held.items() if session_id.startswith(session)]
    if len(roles) != 1:
        what = "Several open sessions begin" if roles else "No open session begins"
        raise output.CommandError(f"{what} with {session!r}. `kaiza status` shows them all.", output.FAILURE)
    return roles[0]


def _confirmation_text(locks: list[RoleLock], name: str) -> str:
    return "\n".join([*(line for lock in locks for line in describe_lock(lock)), f"{escape(name)} unlocks this."])


def describe_lock(lock: RoleLock) -> Iterator[str]:
    """Why a role is locked, for a person."""
    yield escape(f"{lock.role} is locked since {lock.at}: {lock.error_code}, record {lock.seq}")
    yield f"  What it tried: kaiza audit show {lock.seq}"


def _require_same_lock(ground: Workspace, lock: RoleLock) -> None:
    """The lock that the person was shown, and no later one."""
    if ground.audit_state.locks.get(lock.role) != lock:
        raise output.CommandError(
            "The lock changed meanwhile. Nothing more was unlocked; run the command again.", output.FAILURE
        )
