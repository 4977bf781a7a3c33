"""A cursor says where a listing goes on; it belongs to one request and to no other.

It is no secret and grants nothing: whoever makes one up can only skip what they could have read.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence

from kaiza.domain import errors

_UNBOUND_ARGUMENTS = frozenset({"cursor", "pageSize", "session_id"})
_DIGEST_BYTES = 12
_MAX_CHARACTER_BYTES = 32
"""Escaped twice over for one outside the basic plane, then base64, and that two times."""
_INTEGER_BYTES = 64
_FRAME_BYTES = 256

CursorKey = tuple[str | int, ...]


def encode(tool_name: str, arguments: Mapping[str, object], key: Sequence[str | int]) -> str:
    """The cursor that goes on after `key`."""
    body = json.dumps(list(key), separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_request_digest(tool_name, arguments, body) + body).decode().rstrip("=")


def decode(cursor: str, tool_name: str, arguments: Mapping[str, object], shape: Sequence[type]) -> CursorKey:
    """The key that a cursor of this very request carries, in the shape it was issued with; CURSOR_INVALID otherwise."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        seal, body = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
        key = json.loads(body) if seal == _request_digest(tool_name, arguments, body) else None
    except (binascii.Error, ValueError):
        key = None
    if not isinstance(key, list) or [type(part) for part in key] != list(shape):
        raise errors.SystemError.tool_failure(
            "CURSOR_INVALID",
            human_message="The cursor does not belong to this request. Ask again without it.",
            cause={"tool_name": tool_name},
        )
    return tuple(key)


def max_response_bytes(key: Sequence[str | int]) -> int:
    """What a cursor with this key adds to a response at the very most."""
    return _FRAME_BYTES + sum(
        _MAX_CHARACTER_BYTES * len(part) if isinstance(part, str) else _INTEGER_BYTES for part in key
    )


def _request_digest(tool_name: str, arguments: Mapping[str, object], body: bytes) -> bytes:
    bound = {name: value for name, value in arguments.items() if name not in _UNBOUND_ARGUMENTS}
    request = json.dumps([tool_name, bound], sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(hashlib.sha256(request).digest() + body).digest()[:_DIGEST_BYTES]
