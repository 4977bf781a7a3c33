"""Error codes: the registry of every code, its meaning and its form in each dialect."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple


class ErrorCode(NamedTuple):
    """One error code: HTTP status, JSON-RPC codes, and the code of the context tools' v0 errors.

    A context tool's failure with a code that has no v0 code is an internal error.
    `locks`: refusing a change with this code locks the role. `retryable`: the same call may succeed later.
    """

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
        """JSON form for `kaiza errors --json`."""
        members = self._asdict()
        return {"error_code": members.pop("name"), **members, "by_cap": _FORMS_BY_CAP.get(self.name)}


# http, rpc, editor_code and error_type of a family of codes. "unity" is the wire's name for errors of the host.
_VALIDATION = (422, -32602, -32002, "validation")
_PERMISSION = (403, -32005, -32005, "permission")
_HOST = (500, -32004, -32004, "unity")
_BUSY = (503, -32004, -32004, "unity")
_FAILURE = (500, -32000, -32000, "execution")
_EXECUTION = (409, -32000, -32000, "execution")
_POLICY = (422, -32000, -32000, "execution")
_INTERNAL = (500, -32603, -32603, "execution")

CONTRACT_VERSION = "1.0.0"
"""Version of the error contract: the envelope's keys and the codes."""

_ROWS = (
    ErrorCode("PARSE_ERROR", "The message is not valid JSON", 400, -32700, -32700, "validation"),
    ErrorCode("INVALID_ENVELOPE", "The message is not a valid request", 400, -32600, -32600, "validation"),
    ErrorCode("METHOD_NOT_FOUND", "Unknown method", 404, -32601, -32601, "not_found"),
    ErrorCode("INVALID_PARAMS", "The method's parameters are not valid", 400, -32602, -32602, "validation"),
    ErrorCode("HEADER_MISMATCH", "An HTTP header differs from the message", 400, -32020, -32020, "validation"),
    ErrorCode("MISSING_CAPABILITY", "The client lacks a required capability", 400, -32021, -32021, "validation"),
    ErrorCode(
        "UNSUPPORTED_PROTOCOL_VERSION", "The protocol version is not supported", 400, -32022, -32022, "validation"
    ),
    ErrorCode("TOOL_NOT_FOUND", "Unknown tool", 404, -32001, -32001, "not_found"),
    ErrorCode("INVALID_TOOL_INPUT", "The tool's arguments are not valid", *_VALIDATION),
    ErrorCode("INVALID_INPUT_TYPE", "An argument has the wrong type", *_VALIDATION),
    ErrorCode("INVALID_INPUT_FORMAT", "An argument is malformed", *_VALIDATION),
    ErrorCode("INVALID_INPUT_VALUE", "An argument's value is not allowed", *_VALIDATION),
    ErrorCode("MISSING_REQUIRED_FIELD", "A required argument is missing", *_VALIDATION),
    ErrorCode("CURSOR_INVALID", "The cursor does not belong to this request", *_VALIDATION),
    ErrorCode(
        "CAP_EXCEEDED", "A limit on time or size was exceeded", 413, -32000, -32000, "execution", "internal_error"
    ),
    ErrorCode("SESSION_NOT_INITIALIZED", "No session is open", 409, -32005, -32005, "permission", retryable=True),
    ErrorCode("SESSION_LOCKED", "Changes are locked after a refused change", 423, -32005, -32005, "permission"),
    ErrorCode("SESSION_INITIALIZATION_FAILED", "The session could not be opened", *_FAILURE, retryable=True),
    ErrorCode("UNAUTHORIZED_ACTION", "The role is not allowed to do this", *_PERMISSION, locks=True),
    ErrorCode("INSUFFICIENT_PERMISSIONS", "The server was started without what this needs", *_PERMISSION),
    ErrorCode("ROLE_MISMATCH", "The server was started for the other role", *_PERMISSION),
    ErrorCode("INVALID_PATH", "The path is malformed", *_VALIDATION),
    ErrorCode("PATH_TRAVERSAL_BLOCKED", "The path contains '..'", *_PERMISSION, locks=True),
    ErrorCode("OUTSIDE_WORKSPACE", "The path is outside the workspace", *_PERMISSION, locks=True),
    ErrorCode("PATH_NOT_FOUND", "The directory does not exist", 404, -32004, -32004, "unity"),
    ErrorCode("FILE_NOT_FOUND", "The file does not exist", 404, -32004, -32004, "unity"),
    ErrorCode("FILE_READ_FAILED", "The file could not be read", *_HOST, retryable=True),
    ErrorCode("FILE_WRITE_FAILED", "The file could not be changed", *_HOST, retryable=True),
    ErrorCode("FILE_ALREADY_EXISTS", "The target already exists", *_EXECUTION),
    ErrorCode("HASH_MISMATCH", "The file's hash differs from the expected one", *_EXECUTION),
    ErrorCode("PATCH_APPLY_FAILED", "The patch does not apply to the file", *_EXECUTION),
    ErrorCode("PATCH_INVALID", "The patch is malformed", *_VALIDATION),
    ErrorCode("PLAN_NOT_FOUND", "The plan does not exist", *_PERMISSION),
    ErrorCode("PLAN_NOT_APPROVED", "The plan is not approved", *_PERMISSION),
    ErrorCode("PLAN_ENFORCEMENT_FAILED", "The plan is not valid", *_PERMISSION),
    ErrorCode("PLAN_SCOPE_VIOLATION", "The plan does not allow this", *_PERMISSION, locks=True),
    ErrorCode("POLICY_VIOLATION", "A workspace rule forbids this", *_POLICY),
    ErrorCode("RUST_POLICY_VIOLATION", "A rule for Rust code forbids this", *_POLICY),
    ErrorCode("PREFLIGHT_FAILED", "The plan's checks failed", *_POLICY),
    ErrorCode("INVARIANT_VIOLATION", "An internal invariant was violated", *_INTERNAL, v0="internal_error", locks=True),
    ErrorCode("BOOTSTRAP_FAILURE", "The server could not start", *_INTERNAL, v0="internal_error"),
    ErrorCode("SELF_AUDIT_FAILURE", "The audit log is damaged", *_INTERNAL, v0="internal_error"),
    ErrorCode("INTERNAL_ERROR", "Internal error in Kaiza", *_INTERNAL, v0="internal_error"),
    ErrorCode("AUDIT_LOG_FAILED", "The audit log could not be written", *_HOST, v0="io_error", retryable=True),
    ErrorCode("AUDIT_LOCK_FAILED", "The audit log is locked by another process", *_BUSY, "io_error", retryable=True),
    ErrorCode("UNKNOWN_TOOL_FAILURE", "The tool failed unexpectedly", *_FAILURE, v0="internal_error"),
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

SYSTEM_ERROR_CODES: Mapping[str, ErrorCode] = MappingProxyType({row.name: row for row in _ROWS})

INVALID_PARAMS_CODES = frozenset(
    {
        "INVALID_TOOL_INPUT",
        "INVALID_INPUT_TYPE",
        "INVALID_INPUT_FORMAT",
        "INVALID_INPUT_VALUE",
        "MISSING_REQUIRED_FIELD",
    }
)
"""Codes of arguments that are not valid. They are of the class INVALID_PARAMS, which `cause.class` names."""

_FORMS_BY_CAP: Mapping[str, Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "CAP_EXCEEDED": {
            "timeout": {"http": 504, "rpc": -32003, "editor_code": -32003, "error_type": "timeout", "retryable": True}
        }
    }
)
"""Members that differ where the cause names this cap: a limit of time has the status and code of timeouts."""


def lookup(error_code: str, cap: object = None) -> ErrorCode:
    """Row of a code, with what differs for the cap in its cause; KeyError if it is not registered."""
    row = SYSTEM_ERROR_CODES[error_code]
    forms = _FORMS_BY_CAP.get(error_code, {})
    return row._replace(**forms[cap]) if isinstance(cap, str) and cap in forms else row


def list_forms() -> Sequence[ErrorCode]:
    """Every row, and below it the forms that it has for a cap, with the cap beside the name."""
    return [
        form
        for row in _ROWS
        for form in (
            row,
            *(lookup(row.name, cap)._replace(name=f"{row.name} ({cap})") for cap in _FORMS_BY_CAP.get(row.name, ())),
        )
    ]
