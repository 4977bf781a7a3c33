"""Pagination cursors: the key of the last item, bound to its request by a digest.

The digest detects mistakes, not forgery. A forged cursor grants nothing: it can only skip items that the caller may
read anyway.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence

from kaiza.domain import errors

# Arguments that may differ between the pages of one listing.
_UNBOUND_ARGUMENTS = frozenset({"cursor", "pageSize", "session_id"})
_DIGEST_BYTES = 12
_MEMBER_BYTES = 20  # the member's name, its quotes and a comma

CursorKey = tuple[str | int, ...]

NEXT_PAGE = " More follow: call again with nextCursor as cursor."
"""End of the summary of a page that is not the last."""


def encode(tool_name: str, arguments: Mapping[str, object], key: Sequence[str | int]) -> str:
    """Cursor of the page that begins after `key`."""
    body = _encode_key(key)
    return base64.urlsafe_b64encode(_request_digest(tool_name, arguments, body) + body).decode().rstrip("=")


def decode(cursor: str, tool_name: str, arguments: Mapping[str, object], shape: Sequence[type]) -> CursorKey:
    """Key in a cursor of this request, with items of the types in `shape`; else CURSOR_INVALID."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        digest, body = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
        key = json.loads(body) if digest == _request_digest(tool_name, arguments, body) else None
    except (binascii.Error, ValueError):
        key = None
    if not isinstance(key, list) or [type(part) for part in key] != list(shape):
        raise errors.SystemError.tool_failure(
            "CURSOR_INVALID",
            human_message="The cursor does not belong to this request. Call again without it.",
            cause={"tool_name": tool_name},
        )
    return tuple(key)


def count_bytes(key: Sequence[str | int]) -> int:
    """Bytes that a cursor with this key adds to a JSON object."""
    return _MEMBER_BYTES + (_DIGEST_BYTES + len(_encode_key(key)) + 2) // 3 * 4


def _encode_key(key: Sequence[str | int]) -> bytes:
    return json.dumps(list(key), separators=(",", ":")).encode()


def _request_digest(tool_name: str, arguments: Mapping[str, object], body: bytes) -> bytes:
    # Hashed twice, so that the digest has a fixed-size prefix and the boundary of request and body is unambiguous.
    bound = {name: value for name, value in arguments.items() if name not in _UNBOUND_ARGUMENTS}
    request = json.dumps([tool_name, bound], sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(hashlib.sha256(request).digest() + body).digest()[:_DIGEST_BYTES]
