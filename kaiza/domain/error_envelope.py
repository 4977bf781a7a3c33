"""Error envelope: the eleven keys that every failure sends to the client, and the form of its cause."""

from collections.abc import Mapping
from typing import Any

import orjson

from kaiza.domain.caps import Caps
from kaiza.domain.plain_values import copy_value, is_instance, plain_text

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

_MAX_TEXT = 4096
_MAX_SHOWN_KEYS = 20
_CAPS = Caps()


def from_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Build the envelope from a failed call's record; the values are the recorded ones."""
    return {key: record[key] for key in KEYS}


def bound_cause(value: object) -> Any:
    """Convert a cause to JSON: null, a string or an object, bounded in size and depth, without cycles or NaN."""
    is_cause = value is None or is_instance(value, (str, Mapping, BaseException))
    cause = copy_value(value if is_cause else {"value": value}, _CAPS.cause_depth, _CAPS.cause_bytes)
    if len(orjson.dumps(cause)) <= _CAPS.cause_bytes:
        return cause
    return {"cut": True, "keys": sorted(cause)[:_MAX_SHOWN_KEYS]} if isinstance(cause, dict) else {"cut": True}


def bound_text(value: object) -> str | None:
    """A member of the envelope: text or null."""
    return None if value is None else plain_text(value, _MAX_TEXT)
