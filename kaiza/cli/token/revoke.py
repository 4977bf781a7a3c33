"""`kaiza token revoke`: end a token and its sessions."""

import argparse

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import open_workspace, resolve_name
from kaiza.cli.token.new import add_name, read_usable_tokens
from kaiza.domain.audit.projection import AuditState
from kaiza.store import human_decisions
from kaiza.store.config.settings import Settings
from kaiza.store.disk import state_dir
from kaiza.store.trust import http_tokens, identity
from kaiza.store.trust.http_tokens import HttpToken, TokenList


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("revoke", help="end a token and its sessions")
    arguments.describe(
        parser,
        "End a token and its sessions. Recorded, and in force from the next request on. No confirmation is needed. "
        "The name stays used.\n"
        "Exit status: 0 revoked, 1 no such token, or revoked before.",
        "kaiza token revoke ci",
        run=_run_revoke,
    )
    add_name(parser)
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_revoke(args: argparse.Namespace) -> int:
    person = resolve_name(args.name)
    # Default settings: a kaiza.toml that cannot be read must not stop a person from revoking.
    with open_workspace(args, Settings()) as workspace:
        workspace.begin_recording()  # before the lock, which it takes too
        with identity.lock_identity(state_dir.path_of(workspace.root)):
            tokens = read_usable_tokens(workspace)
            token = _require_token(tokens, args.token_name)
            ended = _count_sessions(workspace.audit_state, token)
            # Recorded first, so that after a crash the command can be run again and completes it.
            detail = {"token": token.label, "sessions": ended}
            human_decisions.record_decision(workspace, "revoke_token", person, detail=detail)
            revoked = tokens.revoke(token.name, http_tokens.read_clock())
            http_tokens.save_tokens(workspace.root, revoked.tokens)
    if args.json:
        output.print_json({"name": token.name, "principal": token.label, "sessions_ended": ended})
    else:
        sessions = {0: "It had no open session", 1: "Its session is ended"}.get(
            ended, f"Its {ended} sessions are ended"
        )
        output.print_sentences([f"{token.name} is revoked. {sessions}."])
    return output.SUCCESS


def _require_token(tokens: TokenList, name: str) -> HttpToken:
    token = tokens.find(name)
    if token is None or token.revoked is not None:
        problem = "There is no token" if token is None else "Revoked before:"
        raise output.CommandError(
            f"{problem} {name}. Nothing was changed. `kaiza token list` shows all.", output.FAILURE
        )
    return token


def _count_sessions(state: AuditState, token: HttpToken) -> int:
    return sum(session.principal == token.label for session in state.sessions.values())
