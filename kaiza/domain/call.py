"""A tool call: request, outcome and audit receipt, independent of the wire dialect."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kaiza.domain.error_codes import ErrorCode


class Principal(NamedTuple):
    """User of a token, over HTTP. Its sessions are in one workspace, and no other caller can use them."""

    label: str
    """Name of the token, `#`, and the first eight digits of the token's hash."""
    workspace_root: str
    role: str | None = None
    """The only role for which it may begin sessions."""


class CallFault(NamedTuple):
    """Why no tool can be looked up, such as a name that is not a string."""

    error_code: str
    reason: str
    cause: Mapping[str, Any] | None = None
    """The limit that was exceeded, if that is the fault."""


class CallRequest(NamedTuple):
    """A tool's name and its arguments as the client sent them, not validated."""

    tool_name: str
    arguments: object
    client: str | None = None
    conversational: bool = True
    """Whether the client sent `initialize` on this connection; only then may the session be implied."""
    fault: CallFault | None = None
    principal: Principal | None = None
    """Who calls, over HTTP; None on stdio."""
    report_progress: Callable[[int, int | None], None] | None = None
    """Sends the client how many items of how many are processed; None if it did not ask for that."""
    traceparent: str | None = None
    """The trace that the call is part of, in the form of W3C Trace Context; valid if there is one."""


class Receipt(NamedTuple):
    """Position of a call's record in the log."""

    seq: int
    entry_hash: str

    def as_json(self) -> dict[str, object]:
        """JSON form for a result's `_meta`."""
        return {"seq": self.seq, "entry_hash": self.entry_hash}


class Outcome(NamedTuple):
    """Result of a call: an output or an error envelope, never both. Every dialect encodes this value."""

    tool_name: str
    output: Mapping[str, Any] | None = None
    envelope: Mapping[str, Any] | None = None
    evidence: Mapping[str, Any] | None = None
    code: ErrorCode | None = None
    receipt: Receipt | None = None
    diagnostics: Sequence[str] = ()
    """Notes on the output, such as that a scan was stopped."""
