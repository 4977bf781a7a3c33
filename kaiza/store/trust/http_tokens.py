"""Tokens for HTTP: `http_tokens.json` in a workspace's state directory, written only by `kaiza token`.

Only the SHA-256 of a token is kept. No token is valid if the file is damaged or can be opened by other users, or if it
belongs to another workspace that was at this path.
"""

import hmac
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any

from kaiza.clock import current_timestamp
from kaiza.domain.call import Principal
from kaiza.domain.roles import ROLES
from kaiza.store.disk import state_dir
from kaiza.store.disk.byte_io import name_stamp
from kaiza.store.disk.state_dir import StateFile
from kaiza.store.trust import identity
from kaiza.store.trust.binding import Standing, read_binding

FILE = StateFile("http_tokens.json", is_private=True)
USES = StateFile("http_token_uses.json", is_private=True)
MAX_TOKENS = 10_000
"""Tokens of a workspace, revoked ones included."""
_TOKEN = re.compile(r"kz_[A-Za-z0-9_-]{43}")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
_TOKEN_BYTES = 32
_LABEL_DIGITS = 8
_SECONDS_BETWEEN_USES = 60.0


@dataclass(frozen=True, slots=True)
class HttpToken:
    """One token. `created` and `expires` have the log's timestamp format."""

    name: str
    digest: str
    """SHA-256 of the token."""
    role: str | None
    created: str
    expires: str
    revoked: str | None = None

    @property
    def label(self) -> str:
        """The principal that records name."""
        return f"{self.name}#{self.digest[:_LABEL_DIGITS]}"

    def state_at(self, now: str) -> str:
        """`valid`, `revoked`, `expired`, or `not yet valid` where the clock was set back."""
        if self.revoked is not None:
            return "revoked"
        if now >= self.expires:
            return "expired"
        return "valid" if now >= self.created else "not yet valid"


@dataclass(frozen=True, slots=True)
class TokenList:
    """The tokens of a workspace, in the order in which they were made."""

    tokens: tuple[HttpToken, ...] = ()
    problem: str | None = None
    """Why the file cannot be used; then no token is valid."""

    def find(self, name: str) -> HttpToken | None:
        """The token with this name."""
        return next((token for token in self.tokens if token.name == name), None)

    def revoke(self, name: str, now: str) -> "TokenList":
        """The list with this token revoked."""
        return TokenList(tuple(replace(token, revoked=now) if token.name == name else token for token in self.tokens))


def is_token_name(text: str) -> bool:
    """Whether a token may have this name."""
    return _NAME.fullmatch(text) is not None


def new_token(name: str, role: str | None, created: str, expires: str) -> tuple[str, HttpToken]:
    """A random token, and its entry for the file, which does not contain it."""
    token = f"kz_{secrets.token_urlsafe(_TOKEN_BYTES)}"
    return token, HttpToken(name, _hash_token(token), role, created, expires)


def has_token(text: str) -> bool:
    """Whether a text contains what looks like a token."""
    return _TOKEN.search(text) is not None


def read_tokens(root: str) -> TokenList:
    """The tokens of a workspace; none where they are those of another workspace that was at this path."""
    directory = state_dir.path_of(root)
    try:
        return FILE.load(directory, partial(_parse, root)) or TokenList()
    except (OSError, ValueError):
        return TokenList(
            problem=f"{FILE.path_in(directory)} cannot be read, or is open to other users, so no token is valid. "
            "Run chmod 600 on it, or delete it and make new tokens"
        )


def save_tokens(root: str, tokens: Sequence[HttpToken]) -> None:
    """Replace the file; durable when this returns. The caller has recorded the decision, so the workspace has an id."""
    members = {
        "workspace": identity.read_known_id(state_dir.path_of(root)),
        "tokens": [asdict(token) for token in tokens],
    }
    FILE.replace(state_dir.path_of(root, create=True), members, durable=True)


def read_uses(root: str) -> Mapping[str, str]:
    """When each principal last made a request, to the minute."""
    try:
        uses = USES.load(state_dir.path_of(root), lambda document: dict(document["uses"])) or {}
    except (OSError, ValueError):
        return {}
    return {label: at for label, at in uses.items() if isinstance(at, str)}


class TokenAuthenticator:
    """Finds the principal of a token, in all workspaces that a server serves. Thread-safe."""

    def __init__(self, roots: Sequence[str], clock: Callable[[], str] = current_timestamp) -> None:
        self._roots = tuple(roots)
        self._clock = clock
        self._read: dict[str, tuple[object, TokenList]] = {}
        self._used: dict[str, float] = {}
        self._lock = threading.Lock()

    def authenticate(self, token: str) -> Principal | None:
        """The principal of a token; None if no workspace has it, or it is revoked, expired or malformed."""
        if not _TOKEN.fullmatch(token):
            return None
        digest, now, found = _hash_token(token), self._clock(), None
        for root in self._roots:
            for known in self._current_tokens(root):
                # Every token is compared, in constant time: the answer's time says nothing about their hashes.
                if hmac.compare_digest(known.digest, digest) and known.state_at(now) == "valid":
                    found = root, known
        if found is None:
            return None
        self._note_use(*found, now)
        return Principal(found[1].label, found[0], found[1].role)

    def _current_tokens(self, root: str) -> tuple[HttpToken, ...]:
        """The tokens as their file is now, if the workspace belongs to this machine."""
        state_path = state_dir.path_of(root)
        paths = (FILE.path_in(state_path), identity.RECORD.path_in(state_path), identity.local_path(root))
        stamp = tuple(map(name_stamp, paths))
        known = self._read.get(root)
        if known is None or known[0] != stamp:
            # The stamp is older than what is read, so a file that is replaced while it is read is read again.
            is_bound = read_binding(root, state_path).standing is Standing.BOUND
            known = self._read[root] = (stamp, read_tokens(root) if is_bound else TokenList())
        return known[1].tokens

    def _note_use(self, root: str, token: HttpToken, now: str) -> None:
        """Write the time of a token's use, at most once a minute. A failure loses only that."""
        with self._lock:
            if time.monotonic() < self._used.get(token.label, 0.0):
                return
            self._used[token.label] = time.monotonic() + _SECONDS_BETWEEN_USES
            with suppress(OSError):
                USES.replace(state_dir.path_of(root), {"uses": {**read_uses(root), token.label: now}}, durable=False)


def _hash_token(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def _parse(root: str, document: dict[str, Any]) -> TokenList:
    if document["workspace"] is None or document["workspace"] != identity.read_known_id(state_dir.path_of(root)):
        return TokenList()
    tokens = tuple(HttpToken(**entry) for entry in document["tokens"])
    if len({token.name for token in tokens}) != len(tokens) or not all(map(_is_well_formed, tokens)):
        raise ValueError("not made by kaiza token")
    return TokenList(tokens)


def _is_well_formed(token: HttpToken) -> bool:
    times = (token.created, token.expires) if token.revoked is None else (token.created, token.expires, token.revoked)
    return (
        is_token_name(token.name)
        and token.role in (None, *ROLES)
        and _DIGEST.fullmatch(token.digest) is not None
        and all(_TIME.fullmatch(at) for at in times)
    )
