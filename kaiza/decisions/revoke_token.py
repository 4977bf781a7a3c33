"""Revoke a token for HTTP: it is refused from the next request on, and its sessions end.

The one decision that is applied before it is recorded: a log that is locked must not keep a token valid.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass

from kaiza.clock import current_timestamp
from kaiza.decisions.new_token import read_usable_tokens
from kaiza.domain import errors
from kaiza.domain.audit.record import is_well_formed
from kaiza.domain.audit.record_folding import revoked_principal
from kaiza.domain.refusal import RefusedError, UndeterminedError
from kaiza.render.terminal import escape
from kaiza.store import human_decisions
from kaiza.store.audit.reader import read_records
from kaiza.store.disk import state_dir
from kaiza.store.trust import http_tokens, identity
from kaiza.store.trust.http_tokens import HttpToken
from kaiza.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Proposal:
    """A token that is valid, or revoked without a record of that."""

    token: HttpToken


@dataclass(frozen=True, slots=True)
class Decision:
    """The revoked token, and how many sessions its end closed."""

    token: HttpToken
    sessions_ended: int


def propose(root: str, name: str) -> Proposal:
    """Refused if there is no such token, or its end is recorded already."""
    token = read_usable_tokens(root).find(name)
    if token is None:
        raise RefusedError(f"There is no token {name}. Nothing was changed. `kaiza token list` shows all.")
    if token.revoked is not None:
        decisions = (record for record in read_records(root, reverse=True) if record.kind == "person")
        if any(is_well_formed(record) and revoked_principal(record) == token.label for record in decisions):
            raise RefusedError(f"Revoked before: {name}. Nothing was changed. `kaiza token list` shows all.")
    return Proposal(token)


def decide(root: str, proposal: Proposal, person: str, *, opening: AbstractContextManager[Workspace]) -> Decision:
    """Revoke the token in its file, then record that. Undetermined if either fails: the person has to try again.

    `opening` opens the workspace. It is entered only after the file is written, because reading the log may fail.
    """
    name = proposal.token.name
    with identity.lock_identity(state_dir.path_of(root)):
        # Looked at again: another process may have revoked the token, or made one meanwhile.
        token, tokens = propose(root, name).token, read_usable_tokens(root)
        if token.revoked is None:
            try:
                http_tokens.save_tokens(root, tokens.revoke(name, current_timestamp()).tokens)
            except OSError as failure:
                raise UndeterminedError(
                    f"{name} is still valid: it could not be written to disk ({failure.strerror}). Stop the "
                    "server, or make room and run the command again."
                ) from failure
    try:
        with opening as workspace:
            ended = sum(session.principal == token.label for session in workspace.audit_state.sessions.values())
            detail = {"token": token.label, "sessions": ended}
            human_decisions.record_decision(workspace, "revoke_token", person, detail=detail)
    except (errors.SystemError, OSError) as failure:
        reason = escape(str(failure).rstrip("."))
        raise UndeterminedError(
            f"{name} is revoked, but this is not recorded: {reason}. Run the command again to record it."
        ) from failure
    return Decision(token, ended)
