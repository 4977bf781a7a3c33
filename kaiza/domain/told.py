"""What of a call the record may tell: paths, hashes, sizes and settings; of everything else its SHA-256 and length.

Each path is bounded on its own, so that no other argument, and no other path, keeps it out of the record.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from kaiza.domain import canonical

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

PATHS = frozenset({"destination", "path", "paths", "source"})
"""Arguments that name files; they are told normalised."""

LONGEST_TEXT = 4096
LONGEST_NAME = 64
LONGEST_ARGUMENTS = 32 * 1024
LONGEST_TOLD = 120 * 1024
"""So many bytes of a record the arguments take where many long paths compete for them."""
ALWAYS_FOR_PATHS = 16 * 1024
MOST_MEMBERS = 64
_DEEPEST = 4
_LARGEST_INTEGER = 2**53
_LONGEST_ESCAPE = len(r"\\u0000")
_HASH = re.compile(r"[0-9a-f]{64}")


def arguments(asked: object) -> Any:
    """The arguments as the record tells them."""
    if not isinstance(asked, Mapping):
        return None if asked is None else _digest(asked)
    members = [(key, value) for key, value in asked.items() if key not in PATHS][:MOST_MEMBERS]
    told = {key[:LONGEST_NAME]: _plain(value, _DEEPEST) if key in PLAIN else _digest(value) for key, value in members}
    named = {key: _paths(value) for key, value in asked.items() if key in PATHS}
    if len(repr(told)) > LONGEST_ARGUMENTS:
        if not named:
            return _digest(asked)
        told = {key[:LONGEST_NAME]: _digest(value) for key, value in members}
    return told | _fit_paths(named, told)


def path(text: str) -> str:
    """Normalise a path as it was asked for; where it would lead out (a leading slash, `..`) stays visible."""
    parts = [part for part in text.split("/") if part not in {"", "."}]
    return "/" * text.startswith("/") + "/".join(parts) or text[:1]


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


def _paths(value: object) -> Any:
    """Paths, each within its own bound; whatever else is there instead is no path and told as such."""
    if isinstance(value, list):
        return [_plain(item, 1) if not isinstance(item, str) else _path(item) for item in value[: 2 * MOST_MEMBERS]]
    return _path(value) if isinstance(value, str) else _plain(value, _DEEPEST)


def _path(text: str) -> Any:
    normal = path(text)
    return normal if len(normal) <= LONGEST_TEXT else _digest(normal)


def _fit_paths(named: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """The paths, the longest of them as hashes where a record could not hold them all beside the others."""
    lists = {key: list(value) if isinstance(value, list) else [value] for key, value in named.items()}
    texts = [(key, at) for key, items in lists.items() for at, item in enumerate(items) if isinstance(item, str)]
    if sum(len(lists[key][at]) for key, at in texts) * _LONGEST_ESCAPE <= ALWAYS_FOR_PATHS:
        return dict(named)
    weights = {place: _weight(lists[place[0]][place[1]]) for place in texts}
    space = max(LONGEST_TOLD - _weight(others), ALWAYS_FOR_PATHS)
    for key, at in sorted(texts, key=weights.__getitem__):
        space -= weights[key, at]
        if space < 0:
            lists[key][at] = _digest(lists[key][at])
    return {key: lists[key] if isinstance(value, list) else lists[key][0] for key, value in named.items()}


def _weight(value: object) -> int:
    """How many bytes of a record a value takes."""
    return len(canonical.encode(canonical.tellable(value)[0]))


def _digest(value: object) -> dict[str, Any]:
    """The proof of a value without the value."""
    text = value if isinstance(value, str) else repr(value)
    raw = text.encode("utf-8", "backslashreplace")
    return {"sha256": hashlib.sha256(raw).hexdigest(), "length": len(raw)}
