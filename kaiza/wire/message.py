"""JSON-RPC 2.0 messages: parses a line into a request, a notification or an invalid message, and encodes answers.

Every line becomes one of the three, so none is dropped without an answer.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from kaiza.domain.caps import MAX_WRITTEN_BYTES
from kaiza.wire import framing
from kaiza.wire.framing import RefusalKind, RefusedLineError
from kaiza.wire.numbers import WideNumber
from kaiza.wire.outline import Outline

RequestId: TypeAlias = str | int | float

BUG_REASON: Final = "Kaiza failed unexpectedly. Send the request again; if it fails again, report it."


# Named tuples, not dataclasses: these are needed before the first answer, and importing `dataclasses` costs 8 ms.


class Request(NamedTuple):
    """A message that must be answered under its id."""

    id: RequestId
    method: str
    params: Mapping[str, Any]
    fault: "InvalidMessage | None" = None
    """Why it is refused, if it is. It is a tool call then, and recorded; the arguments of a line that was not decoded
    are lost."""


class Notification(NamedTuple):
    """A message that is never answered."""

    method: str
    params: Mapping[str, Any]


class InvalidMessage(NamedTuple):
    """A line that is not a valid message. It is answered with an error and not executed."""

    id: RequestId | None
    error_code: str
    reason: str
    cause: Mapping[str, Any] | None = None
    """The limit that was exceeded, if that is the fault."""


_NO_PARAMS: Final[Mapping[str, Any]] = {}
_METHODS_WITH_PARAMS: Final = frozenset({"tools/describe", "server/info"})
"""Methods that require params. Others may omit them: clients probe without them."""
_LINE_FAULTS: Final[Mapping[RefusalKind | Literal["bytes"], InvalidMessage]] = {
    "json": InvalidMessage(
        None,
        "PARSE_ERROR",
        "The line is not a single, strict JSON value in UTF-8: no key occurs twice, and NaN is not a number.",
    ),
    "bytes": InvalidMessage(
        None,
        "INVALID_TOOL_INPUT",
        f"A request may have {framing.MAX_LINE} bytes, and the content of a file in it {MAX_WRITTEN_BYTES}. Send less "
        "at a time: create a large file with its first part, and add the others with edit_file.",
        {"cap": "request_bytes", "limit": framing.MAX_LINE},
    ),
    "depth": InvalidMessage(
        None,
        "INVALID_TOOL_INPUT",
        f"A request may be nested {framing.MAX_DEPTH} levels deep. Send simpler arguments.",
        {"cap": "request_depth", "limit": framing.MAX_DEPTH},
    ),
    "values": InvalidMessage(
        None,
        "INVALID_TOOL_INPUT",
        f"A request may have {framing.MAX_VALUES} values. Send fewer at a time.",
        {"cap": "request_values", "limit": framing.MAX_VALUES},
    ),
}


def parse(line: bytes) -> Request | Notification | InvalidMessage:
    """Parse one line."""
    try:
        value = framing.decode(line)
    except RefusedLineError as refused:
        return _refuse_line(refused.outline, _LINE_FAULTS[refused.kind])
    if isinstance(value, list):
        return InvalidMessage(
            None, "INVALID_ENVELOPE", "Batches are not supported; send each request on a line of its own."
        )
    if not isinstance(value, dict):
        return InvalidMessage(None, "INVALID_ENVELOPE", "A message must be a JSON object.")
    return _parse_message(value)


def refuse_long_line(outline: Outline) -> Request | InvalidMessage:
    """Refuse a line over the limit, which the transport has discarded."""
    fault = _LINE_FAULTS["bytes"]
    fault = fault._replace(cause={**(fault.cause or {}), "size": len(outline)})
    return _refuse_line(outline, fault, "INVALID_ENVELOPE")


def _refuse_line(outline: Outline, fault: InvalidMessage, other_code: str = "PARSE_ERROR") -> Request | InvalidMessage:
    """Refuse a line that was not decoded: under its id, and as a tool call if it names a tool."""
    members = outline.read()
    parsed = _parse_message(members)
    if isinstance(parsed, Request) and _is_named_call(parsed):
        return parsed._replace(fault=fault._replace(id=parsed.id))
    request_id = _find_id(members)
    # An empty id may stand for one that is too long to be kept.
    return fault._replace(id=None if request_id == "" else request_id, error_code=other_code)


def refuse_reused_id(request: Request) -> Request | InvalidMessage:
    """Refuse a request whose id belongs to a request in progress; as a tool call if it names a tool."""
    reason = "The id belongs to a request that has not been answered yet."
    fault = InvalidMessage(request.id, "INVALID_ENVELOPE", reason)
    return request._replace(fault=fault) if _is_named_call(request) else fault


def _is_named_call(request: Request) -> bool:
    name = request.params.get("tool", request.params.get("name"))
    return request.method == "tools/call" and isinstance(name, str) and name != ""


def _parse_message(value: Mapping[str, Any]) -> Request | Notification | InvalidMessage:
    request_id = _find_id(value)
    fault = _find_fault(value)
    if fault is not None:
        return InvalidMessage(request_id, "INVALID_ENVELOPE", fault)
    method, params = value["method"], value.get("params", _NO_PARAMS)
    if request_id is not None:
        return Request(request_id, method, params)
    if "id" not in value and method.startswith("notifications/"):
        return Notification(method, params)
    return InvalidMessage(None, "INVALID_ENVELOPE", "A request needs an id, a string or a number.")


def _find_id(value: Mapping[str, Any]) -> RequestId | None:
    raw_id = value.get("id")
    return raw_id if isinstance(raw_id, str | int | float) and not isinstance(raw_id, bool) else None


def _find_fault(value: Mapping[str, Any]) -> str | None:
    if value.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0".'
    method = value.get("method")
    if not isinstance(method, str) or not method:
        return "method must be a non-empty string."
    if value.get("id") == "":
        return "id must be a number or a non-empty string."
    if method in _METHODS_WITH_PARAMS and "params" not in value:
        return f"{method} needs params, an object."
    if not isinstance(value.get("params", _NO_PARAMS), dict):
        return "params must be an object or absent."
    return None


class ProtocolError(NamedTuple):
    """Form of an error in the protocol: its JSON-RPC code and message, its editor type and its HTTP status."""

    rpc: int
    message: str
    error_type: str
    http: int


PROTOCOL: Final[Mapping[str, ProtocolError]] = {
    "PARSE_ERROR": ProtocolError(-32700, "Parse error", "validation", 400),
    "INVALID_ENVELOPE": ProtocolError(-32600, "Invalid MCP envelope", "validation", 400),
    "METHOD_NOT_FOUND": ProtocolError(-32601, "Method not found", "not_found", 404),
    "INVALID_PARAMS": ProtocolError(-32602, "Invalid request parameters", "validation", 400),
    "INVALID_TOOL_INPUT": ProtocolError(-32602, "Invalid tool input", "validation", 422),
    "HEADER_MISMATCH": ProtocolError(-32020, "Header mismatch", "validation", 400),
    "CURSOR_INVALID": ProtocolError(-32602, "Invalid cursor", "validation", 422),
    "INTERNAL_ERROR": ProtocolError(-32603, "Internal error", "execution", 500),
}
"""Rows needed before the table of error codes is imported; a test compares the two."""

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def encode_json(value: object) -> bytes:
    """Encode a value as compact ASCII JSON."""
    return _ENCODER.encode(value).encode()


def encode_id(request_id: RequestId | None) -> bytes:
    """Encode the id of a request as it was sent."""
    return request_id.text.encode() if isinstance(request_id, WideNumber) else encode_json(request_id)


def result(request_id: RequestId, body: bytes) -> bytes:
    """Line that answers a request with a result."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (encode_id(request_id), body)


def error(request_id: RequestId | None, code: int, message: str, data: bytes) -> bytes:
    """Line that answers a request with a JSON-RPC error."""
    head = b'{"jsonrpc":"2.0","id":%b,"error":{"code":%d,"message":%b,"data":%b}}\n'
    return head % (encode_id(request_id), code, encode_json(message), data)


def rejection(invalid: InvalidMessage) -> bytes:
    """Line that answers an invalid message."""
    row = PROTOCOL[invalid.error_code]
    data = {
        "error_code": invalid.error_code,
        "errorType": row.error_type,
        "http_status": row.http,
        "details": {"reason": invalid.reason, **(invalid.cause or {})},
    }
    return error(invalid.id, row.rpc, row.message, encode_json(data))


def progress(token: str | int, done: int, total: int | None) -> bytes:
    """Line of a notification that `done` of `total` items are processed."""
    params: dict[str, object] = {"progressToken": token, "progress": done}
    if total is not None:
        params["total"] = total
    return encode_json({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}) + b"\n"
