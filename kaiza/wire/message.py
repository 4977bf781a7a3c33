"""JSON-RPC 2.0 messages: parses a line into a request, a notification or an invalid message, and encodes answers.

Every line becomes one of the three, so none is dropped without an answer.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from kaiza.wire import framing

RequestId: TypeAlias = str | int | float

BUG_REASON: Final = "Kaiza failed unexpectedly. Send the request again; if it fails again, report it."


# Named tuples, not dataclasses: these are needed before the first answer, and importing `dataclasses` costs 8 ms.


class Request(NamedTuple):
    """A message that must be answered under its id."""

    id: RequestId
    method: str
    params: Mapping[str, Any]


class Notification(NamedTuple):
    """A message that is never answered."""

    method: str
    params: Mapping[str, Any]


class InvalidMessage(NamedTuple):
    """A line that is not a valid message. It is answered with an error and not executed."""

    id: RequestId | None
    error_code: str
    reason: str


_NO_PARAMS: Final[Mapping[str, Any]] = {}
_METHODS_WITH_PARAMS: Final = frozenset({"tools/describe", "server/info"})
"""Methods that require params. Others may omit them: clients probe without them."""
_ABSENT: Final = object()


def parse(line: bytes) -> Request | Notification | InvalidMessage:
    """Parse one line."""
    try:
        value = framing.decode(line)
    except ValueError:
        return InvalidMessage(None, "PARSE_ERROR", "The line is not a single, strict JSON value in UTF-8.")
    if isinstance(value, list):
        return InvalidMessage(
            None, "INVALID_ENVELOPE", "Batches are not supported; send each request on a line of its own."
        )
    if not isinstance(value, dict):
        return InvalidMessage(None, "INVALID_ENVELOPE", "A message must be a JSON object.")
    return _parse_message(value)


def line_too_long() -> InvalidMessage:
    """Error for a line over the limit. The transport discards such a line, so its id is unknown."""
    return InvalidMessage(None, "INVALID_ENVELOPE", f"A line must be at most {framing.MAX_LINE} bytes long.")


def id_in_use(request_id: RequestId) -> InvalidMessage:
    """Error for a request whose id belongs to a request in progress."""
    return InvalidMessage(request_id, "INVALID_ENVELOPE", "The id belongs to a request that has not been answered yet.")


def _parse_message(value: Mapping[str, Any]) -> Request | Notification | InvalidMessage:
    raw_id = value.get("id", _ABSENT)
    request_id = raw_id if isinstance(raw_id, str | int | float) and not isinstance(raw_id, bool) else None
    fault = _find_fault(value)
    if fault is not None:
        return InvalidMessage(request_id, "INVALID_ENVELOPE", fault)
    method, params = value["method"], value.get("params", _NO_PARAMS)
    if request_id is not None:
        return Request(request_id, method, params)
    if raw_id is _ABSENT and method.startswith("notifications/"):
        return Notification(method, params)
    return InvalidMessage(None, "INVALID_ENVELOPE", "A request needs an id, a string or a number.")


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


def result(request_id: RequestId, body: bytes) -> bytes:
    """Line that answers a request with a result."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (encode_json(request_id), body)


def error(request_id: RequestId | None, code: int, message: str, data: bytes) -> bytes:
    """Line that answers a request with a JSON-RPC error."""
    head = b'{"jsonrpc":"2.0","id":%b,"error":{"code":%d,"message":%b,"data":%b}}\n'
    return head % (encode_json(request_id), code, encode_json(message), data)


def rejection(invalid: InvalidMessage) -> bytes:
    """Line that answers an invalid message."""
    row = PROTOCOL[invalid.error_code]
    data = {
        "error_code": invalid.error_code,
        "errorType": row.error_type,
        "http_status": row.http,
        "details": {"reason": invalid.reason},
    }
    return error(invalid.id, row.rpc, row.message, encode_json(data))


def progress(token: str | int, done: int, total: int | None) -> bytes:
    """Line of a notification that `done` of `total` items are processed."""
    params: dict[str, object] = {"progressToken": token, "progress": done}
    if total is not None:
        params["total"] = total
    return encode_json({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}) + b"\n"
