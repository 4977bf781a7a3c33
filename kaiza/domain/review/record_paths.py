"""Paths that a record names."""

from collections.abc import Mapping
from typing import Any

_PATH_ARGUMENTS = ("path", "source", "destination", "uri")


def named_paths(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Every path in a record's arguments and changes, each once; the refused one first."""
    arguments, cause = record["arguments"], record["cause"]
    paths: list[object] = []
    if isinstance(cause, Mapping):
        paths.append(cause.get("path"))
    if isinstance(arguments, Mapping):
        paths += [arguments.get(name) for name in _PATH_ARGUMENTS]
        several = arguments.get("paths")
        paths += several if isinstance(several, list) else []
    for change in record["changes"] or ():
        paths += [change.get("source"), change.get("path")]
    return tuple(dict.fromkeys(path for path in paths if isinstance(path, str)))


def report_path(record: Mapping[str, Any]) -> str | None:
    """Path of the report that a record of `write_report` is about. Its name is made of members of the record."""
    detail = record["detail"] if isinstance(record["detail"], Mapping) else {}
    if isinstance(detail.get("path"), str):
        return str(detail["path"])
    members = [record[name] for name in ("timestamp", "role", "session_id", "request_id")]
    if not all(isinstance(member, str) for member in members):
        return None
    at, role, session_id, request_id = members
    return f"docs/reports/{at[:19].replace(':', '-')}-{role.lower()}-{session_id[:8]}-{request_id[:8]}.md"
