"""One line of the run log: a request, and how it was answered. Holds no bodies."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kaiza.domain.canonical_error import CanonicalError

SCHEMA_VERSION: Final = "0.1.0"
"""Version of the envelope specification."""

MAX_TEXT: Final = 200
"""Longest string of a line, in characters: what clients send is cut."""

_FRAME_CODES: Final = frozenset({"PARSE_ERROR", "INVALID_ENVELOPE"})


class RunError(NamedTuple):
    """Why a request failed: its error code, and the names of the members that are at fault."""

    code: str
    details: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """JSON form. The message is the code's own, which repeats nothing of the request."""
        message = CanonicalError.to_jsonrpc_error(self.code)["message"]
        return {"code": self.code, "message": message, "details": self.details}


class RunIds(NamedTuple):
    """Ids of a request, its trace and its span."""

    request: str
    trace: str
    span: str


class RunEvent(NamedTuple):
    """A request and its answer."""

    transport: str
    route: str | None
    """Path of the URL over HTTP, the method on stdio."""
    method: str | None
    dialect: str | None
    tool_id: str | None
    agent_id: str | None
    """The principal over HTTP, the client's name on stdio; for calls only."""
    input_bytes: int
    output_bytes: int
    at: float
    """When the answer was ready, in seconds since 1970."""
    seconds: float
    """Time from the request to the answer."""
    error: RunError | None = None
    audit_seq: int | None = None
    """Number of the call's record in the audit log."""
    ids: RunIds | None = None
    """Deterministic ids; None for random ones."""

    @property
    def is_frame_refused(self) -> bool:
        """Whether the frame was not a valid request."""
        return self.error is not None and self.error.code in _FRAME_CODES

    @property
    def status(self) -> str:
        """`ok`, `invalid_envelope` or `error`."""
        if self.error is None:
            return "ok"
        return "invalid_envelope" if self.is_frame_refused else "error"


class RunStamp(NamedTuple):
    """What the run log adds to an event: the run, the time and the ids."""

    run_id: str
    timestamp: str
    ids: RunIds
    is_deterministic: bool


def encode_event(event: RunEvent, stamp: RunStamp) -> bytes:
    """The line of an event, ASCII, with its newline."""
    members = {
        "ts": stamp.timestamp,
        "runId": stamp.run_id,
        "agentId": event.agent_id,
        "taskId": None,
        "stepId": None,
        "transport": event.transport,
        "route": event.route,
        "method": event.method,
        "traceId": stamp.ids.trace,
        "spanId": stamp.ids.span,
        "requestId": stamp.ids.request,
        "status": event.status,
        "durationMs": 0 if stamp.is_deterministic else round(event.seconds * 1000, 1),
        "attempt": 1,
        "inputBytes": event.input_bytes,
        "outputBytes": event.output_bytes,
        "metadata": {
            "schemaVersion": SCHEMA_VERSION,
            "deterministic": stamp.is_deterministic,
            "dialect": event.dialect,
            "toolId": event.tool_id,
            "promptId": None,
            "auditSeq": event.audit_seq,
        },
        "error": None if event.error is None else event.error.as_json(),
    }
    return json.dumps(_cut_text(members), separators=(",", ":")).encode() + b"\n"


def derive_ids(route: str | None, method: str | None, payload: object) -> RunIds:
    """Ids that follow from the request alone, for deterministic runs."""
    from kaiza.domain.audit.deterministic import derive_id  # noqa: PLC0415  deterministic runs only

    request = {"route": route, "method": method, "payload": payload}
    fingerprint = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return RunIds(derive_id("req", fingerprint), derive_id("trace", fingerprint), derive_id("span", fingerprint))


def _cut_text(value: Any) -> Any:
    if isinstance(value, str):
        return value[:MAX_TEXT]
    if isinstance(value, Mapping):
        return {name: _cut_text(member) for name, member in value.items()}
    if isinstance(value, Sequence):
        return [_cut_text(item) for item in value]
    return value
