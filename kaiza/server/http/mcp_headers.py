"""Compares the headers that MCP requires without a handshake with the body of the request."""

import base64
import re
from typing import Final

from starlette.datastructures import Headers

from kaiza.wire.dialects.mcp import NO_METHOD
from kaiza.wire.message import InvalidMessage, Request
from kaiza.wire.protocol_versions import HANDSHAKE_VERSIONS

_META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
_META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
_NAME_MEMBERS: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_HANDSHAKE_METHODS: Final = frozenset({"initialize", "ping"})
_ENCODED: Final = re.compile(r"=\?base64\?([A-Za-z0-9+/]*={0,2})\?=")
_MAX_ECHO: Final = 64


def is_modern(request: Request, headers: Headers) -> bool:
    """Whether the request is of a revision without a handshake."""
    version = headers.get("mcp-protocol-version")
    # Any known revision with a handshake counts: clients send others than the one they negotiated.
    has_modern_header = version is not None and version not in HANDSHAKE_VERSIONS
    return has_modern_header or _META_VERSION in _meta(request) or request.method == "server/discover"


def find_fault(request: Request, headers: Headers) -> InvalidMessage | None:
    """Why a request without a handshake is refused for its headers; None if they agree with its body."""
    meta = _meta(request)
    if _META_VERSION not in meta or _META_CAPABILITIES not in meta:
        reason = f"params._meta must carry {_META_VERSION} and {_META_CAPABILITIES}."
        return InvalidMessage(request.id, "INVALID_PARAMS", reason)
    expected = {"MCP-Protocol-Version": meta[_META_VERSION], "Mcp-Method": request.method}
    if request.method in _NAME_MEMBERS:
        expected["Mcp-Name"] = request.params.get(_NAME_MEMBERS[request.method])
    for header, value in expected.items():
        # The dialect refuses a value in the body that is not a string.
        if isinstance(value, str) and (fault := _compare(header, value, headers)):
            return InvalidMessage(request.id, "HEADER_MISMATCH", fault)
    if request.method in _HANDSHAKE_METHODS:
        return InvalidMessage(request.id, "METHOD_NOT_FOUND", NO_METHOD)
    return None


def _meta(request: Request) -> dict[str, object]:
    meta = request.params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def _compare(header: str, expected: str, headers: Headers) -> str | None:
    """What to do about a header that is missing, sent twice, or different from the body."""
    values = headers.getlist(header)
    if len(values) != 1:
        return f"Send the header {header} once, with the value in the body: {expected[:_MAX_ECHO]}."
    if _decode(values[0]) != expected:
        sent, named = values[0][:_MAX_ECHO], expected[:_MAX_ECHO]
        return f"The header {header} is {sent}, but the body has {named}. Send the same value in both."
    return None


def _decode(value: str) -> str | None:
    """Value of a header, decoded if it is in base64; None if it is malformed."""
    encoded = _ENCODED.fullmatch(value)
    if encoded is None:
        return value
    try:
        return base64.b64decode(encoded[1], validate=True).decode()
    except ValueError:
        return None
