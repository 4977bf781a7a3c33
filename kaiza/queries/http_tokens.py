"""The tokens of a workspace, without the tokens themselves: names, states and uses."""

from typing import Any

from kaiza.clock import current_timestamp
from kaiza.store.disk import state_dir
from kaiza.store.trust import http_tokens
from kaiza.store.trust.binding import read_binding


def list_tokens(root: str) -> dict[str, Any]:
    """What `kaiza token list --json` prints. `problem` says why no token is valid; None if nothing prevents it."""
    now, tokens, uses = current_timestamp(), http_tokens.read_tokens(root), http_tokens.read_uses(root)
    problem = tokens.problem
    if tokens.tokens and read_binding(root, state_dir.path_of(root)).is_foreign:
        problem = "This workspace came from elsewhere, so no token is valid. Run `kaiza adopt`, then make new tokens"
    rows = [
        {
            "name": token.name,
            "principal": token.label,
            "state": token.state_at(now),
            "role": token.role,
            "created": token.created,
            "expires": token.expires,
            "revoked": token.revoked,
            "last_use": uses.get(token.label),
        }
        for token in tokens.tokens
    ]
    return {"tokens": rows, "problem": problem}
