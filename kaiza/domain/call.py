"""One call as the outside sees it: what was asked, what it came to."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kaiza.domain.error_codes import ErrorCode


class CallRequest(NamedTuple):
    """What a client wants: a tool's name and arguments, before anything about them is believed."""

    tool_name: str
    arguments: object
    client: str | None = None
    conversational: bool = True
    """Whether the client opened this connection with `initialize`, so that a session may be implied."""


class Receipt(NamedTuple):
    """Where a call's record stands in the log."""

    seq: int
    entry_hash: str

    def as_json(self) -> dict[str, object]:
        """The receipt as a result's `_meta` carries it."""
        return {"seq": self.seq, "entry_hash": self.entry_hash}


class Outcome(NamedTuple):
    """What a call came to: an output or an envelope, never both. Every dialect is a projection of this value."""

    tool_name: str
    output: Mapping[str, Any] | None = None
    envelope: Mapping[str, Any] | None = None
    evidence: Mapping[str, Any] | None = None
    code: ErrorCode | None = None
    receipt: Receipt | None = None
