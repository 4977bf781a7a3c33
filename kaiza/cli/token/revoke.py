"""`kaiza token revoke`: end a token and its sessions."""

import argparse

from kaiza.cli.console import arguments, audit_reader, output
from kaiza.cli.console.open_workspace import open_workspace, resolve_root
from kaiza.cli.token.new import add_name
from kaiza.clock import current_timestamp
from kaiza.decisions.new_token import read_usable_tokens
from kaiza.domain import errors
from kaiza.domain.audit.record import is_well_formed
from kaiza.domain.audit.record_folding import revoked_principal
from kaiza.queries.workspaces import find_person_name
from kaiza.render.terminal import escape
from kaiza.store import human_decisions
from kaiza.store.disk import state_dir
from kaiza.store.trust import http_tokens, identity
from kaiza.store.trust.http_tokens import HttpToken, TokenList


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("revoke", help="end a token and its sessions")
    arguments.describe(
        parser,
        "End a token and its sessions. Recorded, and in force from the next request on. No confirmation is needed. "
        "The name cannot be used again.\n"
        "Exit status: 0 revoked, 1 no such token, or revoked before, 3 not revoked or not recorded: run it again.",
        "kaiza token revoke ci",
        run=_run_revoke,
    )
    add_name(parser)
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_revoke(args: argparse.Namespace) -> int:
    person, root = find_person_name(args.name), resolve_root(args)
    # Before the record: a log that is locked, or a disk that is full, must not keep a token valid.
    token = _revoke_token(root, args.token_name)
    try:
        ended = _record_revocation(args, token, person)
    except (errors.SystemError, OSError) as failure:
        reason = escape(str(failure).rstrip("."))
        raise output.CommandError(
            f"{token.name} is revoked, but this is not recorded: {reason}. Run the command again to record it.",
            output.UNDETERMINED,
        ) from failure
    if args.json:
        output.print_json({"name": token.name, "principal": token.label, "sessions_ended": ended})
    else:
        sessions = {0: "It had no open session", 1: "Its session is ended"}.get(
            ended, f"Its {ended} sessions are ended"
        )
        output.print_sentences([f"{token.name} is revoked. {sessions}."])
    return output.SUCCESS


def _revoke_token(root: str, name: str) -> HttpToken:
    """Revoke the token in the file, if it is not revoked there; a CommandError if there is nothing left to do."""
    with identity.lock_identity(state_dir.path_of(root)):
        tokens = read_usable_tokens(root)
        token = tokens.find(name)
        if token is None or (token.revoked is not None and _is_recorded(root, token)):
            problem = "There is no token" if token is None else "Revoked before:"
            raise output.CommandError(
                f"{problem} {name}. Nothing was changed. `kaiza token list` shows all.", output.FAILURE
            )
        if token.revoked is None:
            _save_revoked(root, tokens.revoke(name, current_timestamp()), name)
    return token


def _save_revoked(root: str, tokens: TokenList, name: str) -> None:
    try:
        http_tokens.save_tokens(root, tokens.tokens)
    except OSError as failure:
        raise output.CommandError(
            f"{name} is still valid: it could not be written to disk ({failure.strerror}). Stop the "
            "server, or make room and run the command again.",
            output.UNDETERMINED,
        ) from failure


def _is_recorded(root: str, token: HttpToken) -> bool:
    decisions = (record for record in audit_reader.read_backward(root) if record.get("kind") == "person")
    return any(is_well_formed(record) and revoked_principal(record) == token.label for record in decisions)


def _record_revocation(args: argparse.Namespace, token: HttpToken, person: str) -> int:
    """Record the revocation, which ends the token's sessions; their number."""
    # Default settings: a kaiza.toml that cannot be read must not stop a person from revoking.
    with open_workspace(args, uses_settings=False) as workspace:
        ended = sum(session.principal == token.label for session in workspace.audit_state.sessions.values())
        detail = {"token": token.label, "sessions": ended}
        human_decisions.record_decision(workspace, "revoke_token", person, detail=detail)
    return ended
