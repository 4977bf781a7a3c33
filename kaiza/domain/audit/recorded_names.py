r"""Names in records as files have them. Records write bytes that are not UTF-8 and U+007F as escapes, `\xNN`.

`detail.escaped` lists the members with such names. With `detail.escaping` 2 a backslash in these members is doubled, so
that no two names are written alike; without it nothing is restored.
"""

import re
from collections.abc import Mapping
from typing import Any

from kaiza.domain.audit import canonical_json
from kaiza.domain.audit.canonical_json import DOUBLED_BACKSLASHES
from kaiza.domain.audit.record import Record

_ESCAPE = re.compile(r"\\(?:\\|x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_DEPTH = 12
_PATH_ARGUMENTS = ("path", "source", "destination", "uri")
_MODES = "detail.modes."


def restore_names(record: Record) -> Record:
    """Restore the names in a record and drop the list of escaped members. The original is not changed."""
    detail = record.detail
    if "escaped" not in detail or type(detail["escaped"]) is not list:
        return record
    if detail.get("escaping") != DOUBLED_BACKSLASHES:
        return record
    members = {member for member in detail["escaped"] if isinstance(member, str)}
    restored = _restore(record.members, _as_tree(members))
    left = {name: value for name, value in restored["detail"].items() if name not in ("escaped", "escaping")}
    if isinstance(detail.get("modes"), Mapping):
        left["modes"] = {
            _unescape_key(name) if _MODES + name in members else name: mode for name, mode in detail["modes"].items()
        }
    return Record({**restored, "detail": left})


def recorded_paths(record: Record) -> tuple[str, ...]:
    """Every path in a record's arguments and changes, in order, each once."""
    paths: list[object] = [record.arguments.get(name) for name in _PATH_ARGUMENTS]
    several = record.arguments.get("paths")
    paths += several if isinstance(several, list) else []
    for change in record.changes:
        paths += [change.get("source"), change.get("path")] if isinstance(change, Mapping) else []
    return tuple(dict.fromkeys(path for path in paths if isinstance(path, str)))


def recorded_form(name: str) -> str:
    """How records spell a name."""
    return str(canonical_json.to_recordable([name])[0][0])


def _as_tree(members: set[str]) -> dict[str, Any]:
    """The dotted paths as nested mappings: a record is copied once, however many of its members are listed."""
    tree: dict[str, Any] = {}
    for member in members:
        node = tree
        for part in member.split(".")[:_MAX_DEPTH]:
            node = node.setdefault(part, {})
    return tree


def _restore(value: Any, tree: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        restored = _unescape_value(value) if not tree else value
        # A lone surrogate is no name that a tool can have: only a record that Kaiza did not write leads to one here.
        return value if _SURROGATE.search(restored) else restored
    if isinstance(value, dict):
        return {**value, **{name: _restore(value[name], tree[name]) for name in tree if name in value}}
    if isinstance(value, list):
        return [_restore(item, tree[str(index)]) if str(index) in tree else item for index, item in enumerate(value)]
    return value


def _unescape_value(text: str) -> str:
    return _ESCAPE.sub(lambda escape: _character(escape, raw_byte=0xDC00), text)


def _unescape_key(text: str) -> str:
    restored = _ESCAPE.sub(lambda escape: _character(escape, raw_byte=0), text)
    return text if _SURROGATE.search(restored) else restored


def _character(escape: re.Match[str], raw_byte: int) -> str:
    r"""The character of one escape. `\xNN` is a byte in values, and a character in keys, which are ASCII."""
    byte, short, long = escape.groups()
    if byte is not None:
        number = int(byte, 16)
        return chr(number + raw_byte if number > 0x7F else number)  # noqa: PLR2004  the last of ASCII
    code = short or long
    if code is None:
        return "\\"
    number = int(code, 16)
    return chr(number) if number <= 0x10FFFF else escape[0]  # noqa: PLR2004  the last character
