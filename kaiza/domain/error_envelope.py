"""The envelope every failure carries: the record of the call, cut down to these keys."""

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
_CAPS = Caps()


def from_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """The envelope that a failing call's record holds, value for value."""
    return {key: record[key] for key in KEYS}


def from_error(error: errors.SystemError, timestamp: str) -> dict[str, Any]:
    """The envelope of a failure that has no record, such as one at start-up."""
    told = error.context
    return {
        "error_code": error.error_code,
        "human_message": error.human_message,
        "role": told.get("role"),
        "session_id": told.get("session_id"),
        "workspace_root": told.get("workspace_root"),
        "tool_name": told.get("tool_name", "unknown"),
        "invariant_id": error.invariant_id,
        "phase_id": told.get("phase_id"),
        "plan_hash": told.get("plan_hash"),
        "cause": bound_cause(error.cause),
        "timestamp": timestamp,
    }


def bound_cause(value: object) -> Any:
    """The cause as JSON: null, a string or an object; bounded in size and depth, without cycles or NaN."""
    if value is None or isinstance(value, str):
        told = _json_scalar(value)
    elif isinstance(value, Mapping | BaseException):
        told = _json_value(value, _CAPS.cause_depth)
    else:
        told = {"value": _json_value(value, _CAPS.cause_depth - 1)}
    if len(orjson.dumps(told)) <= _CAPS.cause_bytes:
        return told
    return {"cut": True, "keys": sorted(told)[:20]} if isinstance(told, dict) else {"cut": True}


def _json_value(value: object, depth: int) -> Any:
    """A value made of JSON's own types; what is too deep, too odd or endless is named by its type."""
    if isinstance(value, str | int | float | None):
        return _json_scalar(value)
    if isinstance(value, BaseException):
        return errors.describe_exception(value)
    if depth > 1 and isinstance(value, Mapping):
        return {str(key)[:64]: _json_value(item, depth - 1) for key, item in list(value.items())[:64]}
    if depth > 1 and isinstance(value, list | tuple | set | frozenset):
        return [_json_value(item, depth - 1) for item in list(value)[:64]]
    return f"<{type(value).__name__}>"


def _json_scalar(value: str | float | None) -> Any:
    if isinstance(value, str):
        return value[:_MAX_TEXT].encode("utf-8", "backslashreplace").decode()
    if isinstance(value, float):
        return str(value) if math.isfinite(value) else "not a number"
    if isinstance(value, int) and abs(value) >= _MAX_INTEGER:
        return "a number of more than 53 bits"
    return value
