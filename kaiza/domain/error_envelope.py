"""Error envelope: the eleven keys that every failure sends to the client, taken from the call's record."""

import math
from collections.abc import Mapping
from typing import Any

import orjson

from kaiza.domain import errors
from kaiza.domain.caps import Caps

KEYS = (
    "error_code",
    "human_message",
    "role",
    "session_id",
    "workspace_root",
    "tool_name",
    "invariant_id",
    "phase_id",
    "plan_hash",
    "cause",
    "timestamp",
)

_MAX_INTEGER = 2**53
_MAX_TEXT = 512
_MAX_KEY = _MAX_ITEMS = 64
_MAX_SHOWN_KEYS = 20
_CAPS = Caps()


def from_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Build the envelope from a failed call's record; the values are the recorded ones."""
    return {key: record[key] for key in KEYS}


def from_error(error: errors.SystemError, timestamp: str) -> dict[str, Any]:
    """Build the envelope of a failure that has no record, such as one at start-up."""
    context = error.context
    return {
        "error_code": error.error_code,
        "human_message": error.human_message,
        "role": context.get("role"),
        "session_id": context.get("session_id"),
        "workspace_root": context.get("workspace_root"),
        "tool_name": context.get("tool_name", "unknown"),
        "invariant_id": error.invariant_id,
        "phase_id": context.get("phase_id"),
        "plan_hash": context.get("plan_hash"),
        "cause": bound_cause(error.cause),
        "timestamp": timestamp,
    }


def bound_cause(value: object) -> Any:
    """Convert a cause to JSON: null, a string or an object, bounded in size and depth, without cycles or NaN."""
    if value is None or isinstance(value, str):
        cause = _json_scalar(value)
    elif isinstance(value, Mapping | BaseException):
        cause = _json_value(value, _CAPS.cause_depth)
    else:
        cause = {"value": _json_value(value, _CAPS.cause_depth - 1)}
    if len(orjson.dumps(cause)) <= _CAPS.cause_bytes:
        return cause
    return {"cut": True, "keys": sorted(cause)[:_MAX_SHOWN_KEYS]} if isinstance(cause, dict) else {"cut": True}


def _json_value(value: object, depth: int) -> Any:
    """Convert to JSON types. A value that is nested too deeply, or is of another type, becomes its type's name."""
    # The depth limit also ends a value that contains itself.
    if isinstance(value, str | int | float | None):
        return _json_scalar(value)
    if isinstance(value, BaseException):
        return errors.describe_exception(value)
    if depth > 1 and isinstance(value, Mapping):
        return {str(key)[:_MAX_KEY]: _json_value(item, depth - 1) for key, item in list(value.items())[:_MAX_ITEMS]}
    if depth > 1 and isinstance(value, list | tuple | set | frozenset):
        return [_json_value(item, depth - 1) for item in list(value)[:_MAX_ITEMS]]
    return f"<{type(value).__name__}>"


def _json_scalar(value: str | float | None) -> Any:
    if isinstance(value, str):
        return value[:_MAX_TEXT].encode("utf-8", "backslashreplace").decode()
    if isinstance(value, float):
        return str(value) if math.isfinite(value) else "not a number"
    if isinstance(value, int) and abs(value) >= _MAX_INTEGER:
        return "a number of more than 53 bits"
    return value
