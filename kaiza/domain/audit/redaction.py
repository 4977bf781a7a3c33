"""What of a call the record may tell: paths, hashes, sizes and settings; of everything else its SHA-256 and length.

Each path is bounded on its own, so that no other argument, and no other path, keeps it out of the record.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from kaiza.domain.audit import canonical_json

PLAIN_ARGUMENTS = frozenset(
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

PATH_ARGUMENTS = frozenset({"destination", "path", "paths", "source"})
"""Arguments that name files; they are told normalised."""

MAX_TEXT = 4096
MAX_NAME = 64
MAX_ARGUMENTS_LENGTH = 32 * 1024
MAX_RECORDED_BYTES = 120 * 1024
"""So many bytes of a record the arguments take where many long paths compete for them."""
MIN_PATH_BYTES = 16 * 1024
MAX_MEMBERS = 64
_MAX_DEPTH = 4
_MAX_INTEGER = 2**53
_MAX_ESCAPE_LENGTH = len(r"\\u0000")
_HASH = re.compile(r"[0-9a-f]{64}")


def redact_arguments(asked: object) -> Any:
    """The arguments as the record tells them."""
    if not isinstance(asked, Mapping):
        return None if asked is None else _digest(asked)
    members = [(key, value) for key, value in asked.items() if key not in PATH_ARGUMENTS][:MAX_MEMBERS]
    told = {
        key[:MAX_NAME]: _redact_value(value, _MAX_DEPTH) if key in PLAIN_ARGUMENTS else _digest(value)
        for key, value in members
    }
    named = {key: _redact_paths(value) for key, value in asked.items() if key in PATH_ARGUMENTS}
    if len(repr(told)) > MAX_ARGUMENTS_LENGTH:
        if not named:
            return _digest(asked)
        told = {key[:MAX_NAME]: _digest(value) for key, value in members}
    return told | _fit_paths(named, told)


def normalize_path(text: str) -> str:
    """Normalise a path as it was asked for; where it would lead out (a leading slash, `..`) stays visible."""
    parts = [part for part in text.split("/") if part not in {"", "."}]
    return "/" * text.startswith("/") + "/".join(parts) or text[:1]


def truncate_name(tool_name: str) -> str:
    """A tool's name as the record tells it, also one that nobody has."""
    return tool_name[:MAX_NAME]


def requested_plan_hash(asked: Mapping[str, Any]) -> str | None:
    """The hash the caller named, where it is one."""
    value = asked.get("plan_hash")
    return value if isinstance(value, str) and _HASH.fullmatch(value) else None


def requested_phase_id(asked: Mapping[str, Any]) -> str | None:
    """The phase the caller named, where it could be one."""
    value = asked.get("phase_id")
    return value if isinstance(value, str) and len(value) <= MAX_NAME else None


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
    """Paths, each within its own bound; whatever else is there instead is no path and told as such."""
    if isinstance(value, list):
        return [
            _redact_value(item, 1) if not isinstance(item, str) else _redact_path(item)
            for item in value[: 2 * MAX_MEMBERS]
        ]
    return _redact_path(value) if isinstance(value, str) else _redact_value(value, _MAX_DEPTH)


def _redact_path(text: str) -> Any:
    normal = normalize_path(text)
    return normal if len(normal) <= MAX_TEXT else _digest(normal)


def _fit_paths(named: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """The paths, the longest of them as hashes where a record could not hold them all beside the others."""
    lists = {key: list(value) if isinstance(value, list) else [value] for key, value in named.items()}
    texts = [(key, at) for key, items in lists.items() for at, item in enumerate(items) if isinstance(item, str)]
    if sum(len(lists[key][at]) for key, at in texts) * _MAX_ESCAPE_LENGTH <= MIN_PATH_BYTES:
        return dict(named)
    weights = {place: _record_bytes(lists[place[0]][place[1]]) for place in texts}
    space = max(MAX_RECORDED_BYTES - _record_bytes(others), MIN_PATH_BYTES)
    for key, at in sorted(texts, key=weights.__getitem__):
        space -= weights[key, at]
        if space < 0:
            lists[key][at] = _digest(lists[key][at])
    return {key: lists[key] if isinstance(value, list) else lists[key][0] for key, value in named.items()}


def _record_bytes(value: object) -> int:
    """How many bytes of a record a value takes."""
    return len(canonical_json.encode(canonical_json.to_recordable(value)[0]))


def _digest(value: object) -> dict[str, Any]:
    """The proof of a value without the value."""
    text = value if isinstance(value, str) else repr(value)
    raw = text.encode("utf-8", "backslashreplace")
    return {"sha256": hashlib.sha256(raw).hexdigest(), "length": len(raw)}
