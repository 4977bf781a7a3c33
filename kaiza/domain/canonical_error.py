"""Form of the error codes in the canonical dialect: an HTTP status and a JSON-RPC error."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kaiza.domain import error_codes

_MESSAGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "INVALID_ENVELOPE": "Invalid MCP envelope",
        "INVALID_TOOL_INPUT": "Invalid tool input",
        "TOOL_NOT_FOUND": "Unknown tool",
        "INTERNAL_ERROR": "Internal error",
    }
)
"""Messages that the envelope specification fixes. Every other code has its meaning in the registry as its message."""


class CanonicalError:
    """Translates error codes; KeyError for a code that is not registered, because a status must not be guessed.

    `cap` is the cap of a CAP_EXCEEDED: the one for timeouts has a status and a code of its own.
    """

    @staticmethod
    def to_http_status(code: str, cap: str | None = None) -> int:
        """HTTP status of an error code."""
        return error_codes.lookup(code, cap).http

    @staticmethod
    def to_jsonrpc_error(code: str, cap: str | None = None) -> dict[str, object]:
        """JSON-RPC error of an error code: exactly `code` and `message`."""
        row = error_codes.lookup(code, cap)
        return {"code": row.rpc, "message": _MESSAGES.get(code, row.meaning)}
