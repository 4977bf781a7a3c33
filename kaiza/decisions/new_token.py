"""New token for HTTP, in one workspace."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from kaiza.clock import current_timestamp
from kaiza.domain.refusal import RefusedError
from kaiza.domain.timestamps import format_timestamp
from kaiza.queries.workspaces import require_sound_log
from kaiza.store import human_decisions
from kaiza.store.disk import state_dir
from kaiza.store.trust import http_tokens, identity
from kaiza.store.trust.http_tokens import HttpToken, TokenList
from kaiza.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Proposal:
    """A token with this name, for sessions of one role or of either."""

    name: str
    role: str | None
    created: str
    expires: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The token itself, which is kept nowhere, and its entry in the file."""

    token: str
    kept: HttpToken


def propose(workspace: Workspace, name: str, role: str | None, lifetime: timedelta) -> Proposal:
    """A token that is valid from now on. Refused if the log is not sound, or the name cannot be used."""
    require_sound_log(workspace)
    _require_free_name(read_usable_tokens(workspace.root), name)
    created = current_timestamp()
    return Proposal(name, role, created, format_timestamp(datetime.fromisoformat(created) + lifetime))


def decide(workspace: Workspace, proposal: Proposal, person: str) -> Decision:
    """Record the token, then write its entry: there is no token without its record."""
    workspace.begin_recording()  # before the lock of the identity, which it takes too
    with identity.lock_identity(state_dir.path_of(workspace.root)):
        tokens = read_usable_tokens(workspace.root)
        _require_free_name(tokens, proposal.name)
        token, kept = http_tokens.new_token(proposal.name, proposal.role, proposal.created, proposal.expires)
        detail = {"token": kept.label, "role": kept.role, "expires": kept.expires}
        human_decisions.record_decision(workspace, "new_token", person, detail=detail)
        http_tokens.save_tokens(workspace.root, (*tokens.tokens, kept))
    return Decision(token, kept)


def is_token_name(text: str) -> bool:
    """Whether a token may have this name."""
    return http_tokens.is_token_name(text)


def read_usable_tokens(root: str) -> TokenList:
    """The tokens of a workspace; refused if their file cannot be used."""
    tokens = http_tokens.read_tokens(root)
    if tokens.problem is not None:
        raise RefusedError(f"{tokens.problem}. Nothing was changed.")
    return tokens


def _require_free_name(tokens: TokenList, name: str) -> None:
    if tokens.find(name) is not None:
        raise RefusedError(
            f"The name {name} was used before, and a name is never used twice: the log would not tell the two apart. "
            "Choose another name; `kaiza token list` shows all."
        )
    if len(tokens.tokens) >= http_tokens.MAX_TOKENS:
        raise RefusedError(
            f"This workspace has had {http_tokens.MAX_TOKENS:,} tokens, the most there can be. Use one of those that "
            "are valid; `kaiza token list` shows them."
        )
