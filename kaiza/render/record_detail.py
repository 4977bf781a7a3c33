"""One record in full, for a person: every member that says something, each on a line of its own."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from kaiza.render.terminal import escape, paint

_FIRST_MEMBERS = ("seq", "timestamp", "kind", "outcome", "error_code", "human_message", "invariant_id", "cause")
_LAST_MEMBERS = ("prev_hash", "entry_hash")
_STYLES = {"ok": "green", "error": "red"}


def render_record(record: Mapping[str, Any], *, colour: bool = False) -> Iterator[str]:
    """The record's members, what it came to first, its place in the chain last; what is null is left out."""
    middle = [name for name in record if name not in _FIRST_MEMBERS + _LAST_MEMBERS]
    named = [name for name in (*_FIRST_MEMBERS, *middle, *_LAST_MEMBERS) if record.get(name) is not None]
    room = max(map(len, named), default=0)
    for name in named:
        for at, part in enumerate(_format_value(record[name])):
            shown = escape(name).ljust(room) if at == 0 else " " * room
            yield f"{paint(shown, 'dim', colour=colour)}  {paint(part, _STYLES.get(part, ''), colour=colour)}"


def _format_value(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield escape(value)
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        yield from map(_format_inline, value)
    else:
        yield _format_inline(value)


def _format_inline(value: object) -> str:
    """A value on one line; of an object only what is not null."""
    if isinstance(value, dict):
        value = {name: item for name, item in value.items() if item is not None}
        return "  ".join(f"{escape(str(name))}={_format_inline(item)}" for name, item in value.items()) or "{}"
    if isinstance(value, str):
        return escape(value)
    return escape(orjson.dumps(value).decode("utf-8", "replace"))
