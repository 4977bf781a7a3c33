"""An answer becomes one line; whatever it holds, it ends with the only newline in it."""

import json
from collections.abc import Mapping
from typing import Final

from kaiza.wire.message import InvalidMessage, RequestId

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
