"""Encodes errors of the context tools: one object with a code and a message, the same bytes for the same failure.

In every dialect a context tool's failure is this object. It has no envelope, receipt or time.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kaiza.domain.call import Outcome
from kaiza.domain.error_codes import ErrorCode, lookup

CONTEXT_TOOLS: Final = frozenset({"context_resolve", "context_list_caches", "context_inspect_cache"})

MESSAGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cache_missing": "Cache does not exist",
        "cache_invalid": "Cache exists but is invalid",
        "invalid_query": "Query is invalid",
        "invalid_budget": "Budget is invalid",
        "io_error": "I/O error occurred",
        "internal_error": "Internal error",
    }
)
"""The only codes of this version, with their only messages."""


def is_context_call(outcome: Outcome) -> bool:
    """Whether a context tool was called."""
    return outcome.tool_name in CONTEXT_TOOLS


def find_code(outcome: Outcome) -> ErrorCode:
    """The error code of a failed call; every failure without a v0 code is an internal error."""
    code = outcome.code
    # A request beyond a limit, whose arguments were not read: what can be too long is the query.
    if code is not None and code.name == "INVALID_TOOL_INPUT":
        return lookup("CONTEXT_QUERY_INVALID")
    return code if code is not None and code.v0 in MESSAGES else lookup("INTERNAL_ERROR")


def to_v0_error(outcome: Outcome) -> dict[str, dict[str, str]]:
    """The error object of a failed call."""
    v0 = str(find_code(outcome).v0)
    return {"error": {"code": v0, "message": MESSAGES[v0]}}
