"""Redaction: which tool arguments the log stores verbatim. All others are stored as SHA-256 and length.

Paths are limited separately, so that no other argument can push them out of the record.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from kaiza.domain.audit import canonical_json

PLAIN_ARGUMENTS = frozenset(
    {
        *("byte_offset", "client", "context_lines", "destination", "dry_run", "encoding", "expected_hash"),
        *("glob", "ignore_case", "include_ignored", "max_lines", "outcome", "pageSize", "path", "paths"),
        *("pattern", "phase_id", "plan_hash", "plan_id", "position", "regex", "all_of_session", "request_ids"),
        *("role", "session_id", "since_seq", "source", "start_line", "status", "tool_name", "uri"),
        "workspace_root",
    }
)
"""Arguments that are stored verbatim."""

PATH_ARGUMENTS = frozenset({"destination", "path", "paths", "source"})
"""Arguments that name files. They are normalised, so that the log can be searched by path."""

MAX_TEXT = 4096
MAX_NAME = 64
MAX_ARGUMENTS_LENGTH = 32 * 1024
MAX_RECORDED_BYTES = 120 * 1024
"""Bytes of a record for all arguments together; the longest paths are hashed to stay below it."""
MIN_PATH_BYTES = 16 * 1024
"""Bytes for paths even if the other arguments need all of MAX_RECORDED_BYTES."""
MAX_MEMBERS = 64
_MAX_DEPTH = 4
_MAX_INTEGER = 2**53
_MAX_ESCAPE_LENGTH = len(r"\\u0000")  # a lone surrogate becomes \uNNNN, whose backslash JSON escapes again
_HASH = re.compile(r"[0-9a-f]{64}")


def redact_arguments(arguments: object) -> Any:
    """Redact a call's arguments for its record."""
    if not isinstance(arguments, Mapping):
        return None if arguments is None else _digest(arguments)
    members = [(key, value) for key, value in arguments.items() if key not in PATH_ARGUMENTS][:MAX_MEMBERS]
    redacted = {
        key[:MAX_NAME]: _redact_value(value, _MAX_DEPTH) if key in PLAIN_ARGUMENTS else _digest(value)
        for key, value in members
    }
    paths = {key: _redact_paths(value) for key, value in arguments.items() if key in PATH_ARGUMENTS}
    if len(repr(redacted)) > MAX_ARGUMENTS_LENGTH:
        if not paths:
            return _digest(arguments)
        redacted = {key[:MAX_NAME]: _digest(value) for key, value in members}
    return redacted | _fit_paths(paths, redacted)


def normalize_path(text: str) -> str:
    """Drop `.` and empty components. A leading slash and `..` stay, so that an attempt to leave is visible."""
    parts = [part for part in text.split("/") if part not in {"", "."}]
    return "/" * text.startswith("/") + "/".join(parts) or text[:1]


def truncate_name(tool_name: str) -> str:
    """Truncate a tool's name for the record. The tool need not exist."""
    return tool_name[:MAX_NAME]


def requested_plan_hash(arguments: Mapping[str, Any]) -> str | None:
    """The `plan_hash` argument, or None if it is not a hash."""
    value = arguments.get("plan_hash")
    return value if isinstance(value, str) and _HASH.fullmatch(value) else None


def requested_phase_id(arguments: Mapping[str, Any]) -> str | None:
    """The `phase_id` argument, or None if it cannot be an id."""
    value = arguments.get("phase_id")
    # The envelope repeats it, and no answer can hold a lone surrogate.
    is_id = isinstance(value, str) and len(value) <= MAX_NAME and value.encode(errors="replace").decode() == value
    return value if is_id else None


def _redact_value(value: object, depth: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else _digest(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < _MAX_INTEGER else _digest(value)
    if depth > 1 and isinstance(value, list):
        return [_redact_value(item, depth - 1) for item in value[: 2 * MAX_MEMBERS]]
    if depth > 1 and isinstance(value, Mapping):
        return {str(key)[:MAX_NAME]: _redact_value(item, depth - 1) for key, item in list(value.items())[:MAX_MEMBERS]}
    return _digest(value)


def _redact_paths(value: object) -> Any:
    """Redact a path argument: a path, a list of them, or a value of the wrong type."""
    if isinstance(value, list):
        items = value[: 2 * MAX_MEMBERS]
        return [_redact_value(normalize_path(item) if isinstance(item, str) else item, 1) for item in items]
    return _redact_value(normalize_path(value) if isinstance(value, str) else value, _MAX_DEPTH)


def _fit_paths(paths: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Hash the longest paths until all arguments fit into MAX_RECORDED_BYTES."""
    lists = {key: list(value) if isinstance(value, list) else [value] for key, value in paths.items()}
    texts = [(key, index) for key, items in lists.items() for index, item in enumerate(items) if isinstance(item, str)]
    # Nearly every call: they fit even if each character had to be escaped.
    if sum(len(lists[key][index]) for key, index in texts) * _MAX_ESCAPE_LENGTH <= MIN_PATH_BYTES:
        return dict(paths)
    sizes = {(key, index): _record_bytes(lists[key][index]) for key, index in texts}
    remaining = max(MAX_RECORDED_BYTES - _record_bytes(others), MIN_PATH_BYTES)
    # Shortest first: a name that a person will search for survives next to many long ones.
    for key, index in sorted(texts, key=sizes.__getitem__):
        remaining -= sizes[key, index]
        if remaining < 0:
            lists[key][index] = _digest(lists[key][index])
    return {key: lists[key] if isinstance(value, list) else lists[key][0] for key, value in paths.items()}


def _record_bytes(value: object) -> int:
    """Size of a value in a record."""
    return len(canonical_json.encode(canonical_json.to_recordable(value)[0]))


def _digest(value: object) -> dict[str, Any]:
    """SHA-256 and length of a value's text."""
    text = value if isinstance(value, str) else repr(value)
    raw = text.encode("utf-8", "backslashreplace")
    return {"sha256": hashlib.sha256(raw).hexdigest(), "length": len(raw)}
