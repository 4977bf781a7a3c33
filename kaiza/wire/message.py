"""A line is a request, a notification, or refused with a reason: there is no fourth, and none is dropped.

Values here are named tuples, because they are made before the first answer and dataclasses cost 10 ms to import.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from kaiza.wire import framing

RequestId: TypeAlias = str | int | float


class Request(NamedTuple):
    """Something to be answered, under the id it came with."""

    id: RequestId
    method: str
    params: Mapping[str, Any]


class Notification(NamedTuple):
    """Something said that is never answered."""

    method: str
    params: Mapping[str, Any]


class InvalidMessage(NamedTuple):
    """A line that is no message, or a message that cannot be served: answered, never carried out."""

    id: RequestId | None
    error_code: str
    reason: str


_NO_PARAMS: Final[Mapping[str, Any]] = {}
_ABSENT: Final = object()


def parse(line: bytes) -> Request | Notification | InvalidMessage:
    """What the line says."""
    try:
        value = framing.decode(line)
    except ValueError:
        return InvalidMessage(None, "PARSE_ERROR", "The line is not one strict JSON value in UTF-8.")
    if isinstance(value, list):
        return InvalidMessage(None, "INVALID_ENVELOPE", "Batches are not served; send each request on its own line.")
    if not isinstance(value, dict):
        return InvalidMessage(None, "INVALID_ENVELOPE", "A message is a JSON object.")
    return _parse_message(value)


def line_too_long() -> InvalidMessage:
    """A line beyond the bound, of which nothing was kept."""
    return InvalidMessage(None, "INVALID_ENVELOPE", f"A line is at most {framing.MAX_LINE} bytes.")


def id_in_use(request_id: RequestId) -> InvalidMessage:
    """A request under an id that is still waiting for its answer."""
    return InvalidMessage(
        request_id, "INVALID_ENVELOPE", "The id is still in use by a request that is not answered yet."
    )


def _parse_message(value: Mapping[str, Any]) -> Request | Notification | InvalidMessage:
    given = value.get("id", _ABSENT)
    request_id = given if isinstance(given, str | int | float) and not isinstance(given, bool) else None
    fault = _find_fault(value)
    if fault is not None:
        return InvalidMessage(request_id, "INVALID_ENVELOPE", fault)
    method, params = value["method"], value.get("params", _NO_PARAMS)
    if request_id is not None:
        return Request(request_id, method, params)
    if given is _ABSENT and method.startswith("notifications/"):
        return Notification(method, params)
    return InvalidMessage(None, "INVALID_ENVELOPE", "A request needs an id that is a string or a number.")


def _find_fault(value: Mapping[str, Any]) -> str | None:
    if value.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0".'
    method = value.get("method")
    if not isinstance(method, str) or not method:
        return "method must be a string that is not empty."
    if not isinstance(value.get("params", _NO_PARAMS), dict):
        return "params must be an object, or left out."
    return None


PROTOCOL: Final[Mapping[str, tuple[int, str]]] = {
    "PARSE_ERROR": (-32700, "Parse error"),
    "INVALID_ENVELOPE": (-32600, "Invalid MCP envelope"),
    "METHOD_NOT_FOUND": (-32601, "Method not found"),
    "INVALID_PARAMS": (-32602, "Invalid request parameters"),
    "CURSOR_INVALID": (-32602, "Invalid cursor"),
    "INTERNAL_ERROR": (-32603, "Internal error"),
}
"""The registry's rows that are needed before the registry is loaded; a test holds the two together."""

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def encode_json(value: object) -> bytes:
    """The value as JSON without blanks, in ASCII."""
    return _ENCODER.encode(value).encode()


def result(request_id: RequestId, body: bytes) -> bytes:
    """The line that answers a request with a result."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (encode_json(request_id), body)


def error(request_id: RequestId | None, code: int, message: str, data: bytes) -> bytes:
    """The line that answers a request with an error of the protocol."""
    head = b'{"jsonrpc":"2.0","id":%b,"error":{"code":%d,"message":%b,"data":%b}}\n'
    return head % (encode_json(request_id), code, encode_json(message), data)


def rejection(refusal: InvalidMessage) -> bytes:
    """The line that answers a refusal."""
    code, message = PROTOCOL[refusal.error_code]
    return error(refusal.id, code, message, encode_json({"error_code": refusal.error_code, "reason": refusal.reason}))
