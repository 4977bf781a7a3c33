"""The one table of everything that can go wrong; a code that is not here does not exist."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class ErrorCode(NamedTuple):
    """One error code and how every dialect shows it."""

    name: str
    meaning: str
    http: int
    rpc: int
    editor_code: int
    error_type: str
    v0: str | None = None
    retryable: bool = False
    locks: bool = False

    def as_json(self) -> dict[str, object]:
        """The row as `kaiza errors --json` prints it."""
        return {
            "error_code": self.name,
            "meaning": self.meaning,
            "http": self.http,
            "rpc": self.rpc,
            "editor_code": self.editor_code,
            "error_type": self.error_type,
            "v0": self.v0,
            "retryable": self.retryable,
            "locks": self.locks,
        }


_VALIDATION = (422, -32602, -32002, "validation")
_PERMISSION = (403, -32005, -32005, "permission")
_HOST = (500, -32004, -32004, "unity")
_EXECUTION = (409, -32000, -32000, "execution")
_POLICY = (422, -32000, -32000, "execution")
_BROKEN = (500, -32603, -32603, "execution")

_ROWS = (
    ErrorCode("PARSE_ERROR", "The line is not JSON", 400, -32700, -32700, "validation"),
    ErrorCode("INVALID_ENVELOPE", "The message is not a request", 400, -32600, -32600, "validation"),
    ErrorCode("METHOD_NOT_FOUND", "No such method", 404, -32601, -32601, "not_found"),
    ErrorCode("INVALID_PARAMS", "The method's parameters are malformed", 400, -32602, -32602, "validation"),
    ErrorCode("TOOL_NOT_FOUND", "No such tool", 404, -32001, -32001, "not_found"),
    ErrorCode("INVALID_TOOL_INPUT", "The tool's arguments are not valid", *_VALIDATION, v0="by field"),
    ErrorCode("INVALID_INPUT_TYPE", "An argument has the wrong type", *_VALIDATION, v0="by field"),
    ErrorCode("INVALID_INPUT_FORMAT", "An argument is malformed", *_VALIDATION, v0="by field"),
    ErrorCode("INVALID_INPUT_VALUE", "An argument has a value that is not allowed", *_VALIDATION, v0="by field"),
    ErrorCode("MISSING_REQUIRED_FIELD", "A required argument is missing", *_VALIDATION, v0="by field"),
    ErrorCode("CURSOR_INVALID", "The cursor does not belong to this request", *_VALIDATION),
    ErrorCode(
        "CAP_EXCEEDED", "A limit on time or size was reached", 413, -32000, -32000, "execution", "internal_error"
    ),
    ErrorCode("SESSION_NOT_INITIALIZED", "There is no open session", 409, -32005, -32005, "permission", retryable=True),
    ErrorCode("SESSION_LOCKED", "Changes are locked after a refused attempt", 423, -32005, -32005, "permission"),
    ErrorCode(
        "SESSION_INITIALIZATION_FAILED",
        "The session could not be opened",
        500,
        -32000,
        -32000,
        "execution",
        retryable=True,
    ),
    ErrorCode("UNAUTHORIZED_ACTION", "The role may not do this", *_PERMISSION, locks=True),
    ErrorCode("INSUFFICIENT_PERMISSIONS", "The tier does not offer this", *_PERMISSION),
    ErrorCode("ROLE_MISMATCH", "The server is bound to the other role", *_PERMISSION),
    ErrorCode("INVALID_PATH", "The path is malformed", *_VALIDATION, v0="cache_missing"),
    ErrorCode("PATH_TRAVERSAL_BLOCKED", "The path climbs upwards", *_PERMISSION, v0="cache_missing", locks=True),
    ErrorCode("OUTSIDE_WORKSPACE", "The path leaves the workspace", *_PERMISSION, v0="cache_missing", locks=True),
    ErrorCode("PATH_NOT_FOUND", "No such directory", 404, -32004, -32004, "unity", "cache_missing"),
    ErrorCode("FILE_NOT_FOUND", "No such file", 404, -32004, -32004, "unity", "cache_missing"),
    ErrorCode("FILE_READ_FAILED", "The file could not be read", *_HOST, v0="io_error", retryable=True),
    ErrorCode("FILE_WRITE_FAILED", "The file could not be changed", *_HOST, v0="io_error", retryable=True),
    ErrorCode("FILE_ALREADY_EXISTS", "Something is there already", *_EXECUTION),
    ErrorCode("HASH_MISMATCH", "The file is not what the caller expected", *_EXECUTION),
    ErrorCode("PATCH_APPLY_FAILED", "The patch does not fit the file", *_EXECUTION),
    ErrorCode("PATCH_INVALID", "The patch is malformed", *_VALIDATION),
    ErrorCode("PLAN_NOT_FOUND", "No such plan", *_PERMISSION),
    ErrorCode("PLAN_NOT_APPROVED", "The plan is not approved", *_PERMISSION),
    ErrorCode("PLAN_ENFORCEMENT_FAILED", "The plan is not valid", *_PERMISSION),
    ErrorCode("PLAN_SCOPE_VIOLATION", "The plan does not allow this", *_PERMISSION, locks=True),
    ErrorCode("POLICY_VIOLATION", "A rule of the workspace forbids this", *_POLICY),
    ErrorCode("RUST_POLICY_VIOLATION", "A rule for Rust code forbids this", *_POLICY),
    ErrorCode("PREFLIGHT_FAILED", "The plan's checks did not pass", *_POLICY),
    ErrorCode("INVARIANT_VIOLATION", "A law of the system was broken", *_BROKEN, v0="internal_error", locks=True),
    ErrorCode("BOOTSTRAP_FAILURE", "The server could not start", *_BROKEN, v0="internal_error"),
    ErrorCode("SELF_AUDIT_FAILURE", "The record is damaged", *_BROKEN, v0="internal_error"),
    ErrorCode("INTERNAL_ERROR", "Kaiza itself failed", *_BROKEN, v0="internal_error"),
    ErrorCode("AUDIT_LOG_FAILED", "The record could not be written", *_HOST, v0="internal_error", retryable=True),
    ErrorCode(
        "AUDIT_LOCK_FAILED",
        "The record is held by another process",
        503,
        -32004,
        -32004,
        "unity",
        "internal_error",
        retryable=True,
    ),
    ErrorCode("UNKNOWN_TOOL_FAILURE", "A tool failed unexpectedly", 500, -32000, -32000, "execution", "internal_error"),
    ErrorCode(
        "CONTEXT_CACHE_MISSING", "The context cache does not exist", 404, -32602, -32002, "validation", "cache_missing"
    ),
    ErrorCode("CONTEXT_CACHE_INVALID", "The context cache is invalid", *_VALIDATION, v0="cache_invalid"),
    ErrorCode("CONTEXT_QUERY_INVALID", "The query is invalid", *_VALIDATION, v0="invalid_query"),
    ErrorCode("CONTEXT_BUDGET_INVALID", "The budget is invalid", *_VALIDATION, v0="invalid_budget"),
    ErrorCode(
        "CONTEXT_IO_ERROR",
        "The context cache could not be read",
        503,
        -32603,
        -32004,
        "unity",
        "io_error",
        retryable=True,
    ),
)

REGISTRY: Mapping[str, ErrorCode] = MappingProxyType({row.name: row for row in _ROWS})

_CAP_TIMEOUT = REGISTRY["CAP_EXCEEDED"]._replace(
    http=504, rpc=-32003, editor_code=-32003, error_type="timeout", retryable=True
)


def lookup(error_code: str, cap: str | None = None) -> ErrorCode:
    """The row of a code; an unknown code is a KeyError, never a fallback. A cap of time has a row of its own."""
    if error_code == "CAP_EXCEEDED" and cap == "timeout":
        return _CAP_TIMEOUT
    return REGISTRY[error_code]
