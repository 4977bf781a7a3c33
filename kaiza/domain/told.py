"""What of a call the record may tell: paths, hashes, sizes and settings; of everything else its SHA-256 and length."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

PLAIN = frozenset(
    {
        "byte_offset",
        "client",
        "context_lines",
        "destination",
        "dry_run",
        "encoding",
        "expected_hash",
        "glob",
        "ignore_case",
        "include_ignored",
        "max_lines",
        "outcome",
        "pageSize",
        "path",
        "paths",
        "pattern",
        "phase_id",
        "plan_hash",
        "plan_id",
        "position",
        "regex",
        "all_of_session",
        "request_ids",
        "role",
        "session_id",
        "since_seq",
        "source",
        "start_line",
        "status",
        "tool_name",
        "uri",
        "workspace_root",
    }
)
"""Arguments that are told as they are."""

LONGEST_TEXT = 4096
LONGEST_NAME = 64
LONGEST_ARGUMENTS = 32 * 1024
MOST_MEMBERS = 64
_DEEPEST = 4
_LARGEST_INTEGER = 2**53
_HASH = re.compile(r"[0-9a-f]{64}")


def arguments(asked: object) -> Any:
    """The arguments as the record tells them."""
    if not isinstance(asked, Mapping):
        return None if asked is None else _digest(asked)
    members = list(asked.items())[:MOST_MEMBERS]
    told = {key[:LONGEST_NAME]: _plain(value, _DEEPEST) if key in PLAIN else _digest(value) for key, value in members}
    return told if len(repr(told)) <= LONGEST_ARGUMENTS else _digest(asked)


def name(tool_name: str) -> str:
    """A tool's name as the record tells it, also one that nobody has."""
    return tool_name[:LONGEST_NAME]


def plan_hash(asked: Mapping[str, Any]) -> str | None:
    """The hash the caller named, where it is one."""
    value = asked.get("plan_hash")
    return value if isinstance(value, str) and _HASH.fullmatch(value) else None


def phase_id(asked: Mapping[str, Any]) -> str | None:
    """The phase the caller named, where it could be one."""
    value = asked.get("phase_id")
    return value if isinstance(value, str) and len(value) <= LONGEST_NAME else None


def _plain(value: object, depth: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else _digest(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < _LARGEST_INTEGER else _digest(value)
    if depth > 1 and isinstance(value, list):
        return [_plain(item, depth - 1) for item in value[: 2 * MOST_MEMBERS]]
    if depth > 1 and isinstance(value, Mapping):
        return {str(key)[:LONGEST_NAME]: _plain(item, depth - 1) for key, item in list(value.items())[:MOST_MEMBERS]}
    return _digest(value)


def _digest(value: object) -> dict[str, Any]:
    """The proof of a value without the value."""
    text = value if isinstance(value, str) else repr(value)
    raw = text.encode("utf-8", "backslashreplace")
    return {"sha256": hashlib.sha256(raw).hexdigest(), "length": len(raw)}
