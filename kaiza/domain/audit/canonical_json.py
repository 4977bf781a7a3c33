"""The bytes that are hashed: RFC 8785, inside a profile where orjson with sorted keys gives exactly those bytes.

The profile: ASCII keys, no floats, integers under 2**53, no lone surrogates.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

_STRICT_OPTIONS = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)
_CANONICAL_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER
_SEQUENCE_TYPES = frozenset({list, tuple})
_LIST_TYPES = frozenset({list})
_MAX_INTEGER = 2**53 - 1
_MAX_DEPTH = 128
_DELETE = "\x7f"


def encode(value: Any) -> bytes:
    """RFC 8785 bytes of a value inside the profile; ValueError for any other."""
    try:
        told = orjson.dumps(value, option=_STRICT_OPTIONS)
    except orjson.JSONEncodeError as refused:
        raise ValueError(f"outside the profile: {refused}") from refused
    if not _is_in_profile((value,), _key_check_for(told), _SEQUENCE_TYPES):
        raise ValueError("outside the profile: a float, a key that is not ASCII, or a type JSON does not have")
    return told


def encode_unchecked(value: dict[str, Any]) -> bytes:
    """As `encode`, of members known to be inside the profile: nobody looks again, but at how large integers are."""
    return orjson.dumps(value, option=_CANONICAL_OPTIONS)


def decode(told: bytes) -> dict[str, Any] | None:
    """The object whose `encode` gives exactly these bytes, or None where there is none."""
    try:
        value = orjson.loads(told)
        if type(value) is not dict or orjson.dumps(value, option=_CANONICAL_OPTIONS) != told:
            return None
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None
    keys = _key_check_for(told)
    return value if keys(value) and _is_in_profile(value.values(), keys, _SEQUENCE_TYPES) else None


def _is_in_profile(items: Iterable[Any], keys: Callable[[dict[str, Any]], bool], sequences: frozenset[type]) -> bool:
    """Whether no float, no odd key and no foreign type hides in values that orjson was able to write."""
    for item in items:
        if item is None:
            continue
        kind = type(item)
        if kind is str or kind is int or kind is bool:
            continue
        if kind is dict:
            if not keys(item) or not _is_in_profile(item.values(), keys, sequences):
                return False
        elif kind not in sequences or not _is_in_profile(item, keys, sequences):
            return False
    return True


def _key_check_for(told: bytes) -> Callable[[dict[str, Any]], bool]:
    """What says of the keys in these bytes whether they are ASCII."""
    return _skip_key_check if told.isascii() else _has_ascii_keys


def _has_ascii_keys(members: dict[str, Any]) -> bool:
    return all(map(str.isascii, members))


def _skip_key_check(_members: dict[str, Any]) -> bool:
    """Where the whole is ASCII, so are they."""
    return True


def to_recordable(value: Any) -> tuple[Any, tuple[str, ...]]:
    r"""A value as the record can tell it, and the dotted places where it had to be told differently.

    Odd bytes of a file name (lone surrogates from `os.fsdecode`) become `\xNN`, so does U+007F; other lone
    surrogates become `\uNNNN`, keys are made ASCII, floats and integers of 2**53 and more become text.
    """
    if _is_recordable(value):
        return value, ()
    places: list[str] = []
    told = _recordable_value(value, "", places, 0)
    return told, tuple(places)


def _is_recordable(value: Any) -> bool:
    """Whether nothing has to be told differently, which is so for nearly every record."""
    try:
        told = orjson.dumps(value, option=_STRICT_OPTIONS)
    except orjson.JSONEncodeError:
        return False
    return b"\x7f" not in told and _is_in_profile((value,), _key_check_for(told), _LIST_TYPES)


def _recordable_value(value: Any, place: str, places: list[str], depth: int) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if isinstance(value, str):
        plain = value if kind is str else str.__str__(value)
        return plain if _is_plain_text(plain) else _escape_text(plain, place, places)
    if isinstance(value, int):
        plain_int = int(value)
        if -_MAX_INTEGER <= plain_int <= _MAX_INTEGER:
            return plain_int
    if depth > _MAX_DEPTH:
        raise ValueError("too deep to be recorded")
    return _recordable_container(value, place, places, depth)


def _recordable_container(value: Any, place: str, places: list[str], depth: int) -> Any:
    if isinstance(value, Mapping):
        return _recordable_members(value, place, places, depth)
    if isinstance(value, list | tuple):
        return [
            _recordable_value(item, _join_path(place, index), places, depth + 1) for index, item in enumerate(value)
        ]
    if isinstance(value, int | float):
        places.append(place)
        return repr(value)
    raise ValueError(f"a {type(value).__name__} cannot be recorded")


def _recordable_members(value: Mapping[Any, Any], place: str, places: list[str], depth: int) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for key, item in value.items():
        name = str(key)
        if not name.isascii() or _DELETE in name:
            name = _escape_text(name, "", []).encode("ascii", "backslashreplace").decode("ascii")
            places.append(_join_path(place, name))
        while name in told:
            name += "~"
        told[name] = _recordable_value(item, _join_path(place, name), places, depth + 1)
    return told


def _join_path(place: str, name: object) -> str:
    return f"{place}.{name}" if place else str(name)


def _is_plain_text(text: str) -> bool:
    if _DELETE in text:
        return False
    return text.isascii() or text.isprintable() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _escape_text(text: str, place: str, places: list[str]) -> str:
    places.append(place)
    return "".join(map(_escape_character, text))


def _escape_character(letter: str) -> str:
    if "\udc80" <= letter <= "\udcff":
        return f"\\x{ord(letter) - 0xDC00:02x}"
    if letter == _DELETE:
        return "\\x7f"
    return f"\\u{ord(letter):04x}" if "\ud800" <= letter <= "\udfff" else letter
