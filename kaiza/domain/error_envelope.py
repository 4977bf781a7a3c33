"""Error envelope: the eleven keys that every failure sends to the client, and the form of its cause."""

import math
import re
from collections.abc import Mapping
from typing import Any

import orjson

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

_ABSOLUTE_PATH = re.compile(r"(?<![\w.])/(?:[^\s/'\":]+/)*[^\s/'\":]+")
_MAX_MESSAGE = 200
_MAX_INTEGER = 2**53
_MAX_TEXT = 512
_MAX_KEY = _MAX_ITEMS = 64
_MAX_SHOWN_KEYS = 20
_CAPS = Caps()


def from_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Build the envelope from a failed call's record; the values are the recorded ones."""
    return {key: record[key] for key in KEYS}


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


def describe_exception(error: BaseException) -> dict[str, object]:
    """Describe an exception as {message, code, name}, with absolute paths removed."""
    # str() of an OSError includes the file name; strerror does not.
    message = error.strerror or "" if isinstance(error, OSError) else str(error)
    code = getattr(error, "errno", None) if isinstance(error, OSError) else getattr(error, "code", None)
    return {
        "message": _ABSOLUTE_PATH.sub("<path>", message)[:_MAX_MESSAGE],
        "code": code if isinstance(code, int | str) else None,
        "name": type(error).__name__,
    }


def _json_value(value: object, depth: int) -> Any:
    """Convert to JSON types. A value that is nested too deeply, or is of another type, becomes its type's name."""
    # The depth limit also ends a value that contains itself.
    if isinstance(value, str | int | float | None):
        return _json_scalar(value)
    if isinstance(value, BaseException):
        return describe_exception(value)
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
