"""`kaiza session unlock`: after a refusal that locked a role, a person lets it change files again."""

import argparse
from collections.abc import Iterator
from functools import partial

from kaiza.cli import options, person, say, standing
from kaiza.cli.word import ask_word
from kaiza.domain.session import ROLES, Lock
from kaiza.render.terminal import escape
from kaiza.store import persons_word
from kaiza.store.ground import Ground


def add(commands: options.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("unlock", help="let a locked role change files again", allow_abbrev=False)
    options.describe(
        parser,
        "After a refusal that locked the workspace for a role: shows why, and asks for your word at the terminal.\n"
        "Exit status: 0 unlocked, 1 not unlocked or nothing is locked, 3 no terminal to ask at.",
        "kaiza session unlock\nkaiza session unlock --role WINDSURF",
        run=_unlock,
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("session", metavar="ID", nargs="?", help="unlock the role of this session (default: every role)")
    which.add_argument("--role", choices=ROLES, help="unlock this role")
    options.name(parser)
    options.workspace(parser)
    options.as_json(parser)


def _unlock(args: argparse.Namespace) -> int:
    name = person.name(args.name)
    with standing.ground(args) as ground:
        standing.insist_on_a_sound_record(ground)
        role = args.role or (_role_of(ground, args.session) if args.session else None)
        locks = [lock for lock in ground.facts.locks.values() if role in (None, lock.role)]
        if not locks:
            raise say.Stop(f"Nothing is locked{f' for {role}' if role else ''}. Nothing has changed.", say.NO)
        if not ask_word(_stake(locks, name), "unlock"):
            raise say.Stop("Nothing was unlocked, and nothing has changed.", say.NO)
        for lock in locks:
            check = partial(_insist_on_this, ground, lock)
            detail = {"seq": lock.seq, "error_code": lock.error_code}
            persons_word.give(ground, "unlock", name, check, role=lock.role, detail=detail)
    if args.json:
        say.document({"unlocked": [lock.role for lock in locks]})
    else:
        say.lines([f"Unlocked: {escape(', '.join(lock.role for lock in locks))}."])
    return say.YES


def _role_of(ground: Ground, session: str) -> str:
    """The role of the session that begins so."""
    held = {one.session_id: one.role for one in ground.facts.sessions.values()}
    held |= {lock.session_id: lock.role for lock in ground.facts.locks.values() if lock.session_id}
    roles = [role for session_id, role in held.items() if session_id.startswith(session)]
    if len(roles) != 1:
        what = "Several open sessions begin" if roles else "No open session begins"
        raise say.Stop(f"{what} with {session!r}. `kaiza status` shows them all.", say.NO)
    return roles[0]


def _stake(locks: list[Lock], name: str) -> str:
    return "\n".join([*(line for lock in locks for line in told(lock)), f"{escape(name)} unlocks this."])


def told(lock: Lock) -> Iterator[str]:
    """Why a role is locked, for a person."""
    yield escape(f"{lock.role} is locked since {lock.at}: {lock.error_code}, record {lock.seq}")
    yield f"  What it tried: kaiza audit show {lock.seq}"


def _insist_on_this(ground: Ground, lock: Lock) -> None:
    """The lock that the person was shown, and no later one."""
    if ground.facts.locks.get(lock.role) != lock:
        raise say.Stop("The lock changed meanwhile. Nothing more was unlocked; run the command again.", say.NO)
