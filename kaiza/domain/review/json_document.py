"""JSON document of a report: the members of its dataclasses, in their order. `schemas/review.json` describes it."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from kaiza.domain.paths.shown_names import escape_name

HIDDEN = {"json": None}
"""Metadata of a member that is not in the document."""
INLINE = {"json": ""}
"""Metadata of a member whose own members stand in its place."""
NAME = {"name": True}
"""Metadata of a path, or of several, that may hold bytes that are not UTF-8."""
IF_SET = {"if set": True}
"""Metadata of a member that is left out if it is None, empty, zero or false."""


def in_json_as(name: str) -> dict[str, str]:
    """Metadata of a member that has another name in the document."""
    return {"json": name}


def as_document(value: Any) -> Any:
    """The value in types of JSON."""
    if isinstance(value, tuple):
        return [as_document(item) for item in value]
    if isinstance(value, Mapping):
        return {name: as_document(item) for name, item in value.items()}
    if not is_dataclass(value):
        return value
    if hasattr(value, "as_json"):
        return value.as_json()
    document: dict[str, Any] = {}
    for member in fields(value):
        name, part = member.metadata.get("json", member.name), getattr(value, member.name)
        if name is None or ("if set" in member.metadata and not part):
            continue
        shown: Any = _escape_names(part) if "name" in member.metadata else as_document(part)
        document |= {name: shown} if name else shown
    return document


def _escape_names(names: str | tuple[str, ...] | None) -> list[str] | str | None:
    if isinstance(names, tuple):
        return list(map(escape_name, names))
    return names and escape_name(names)
