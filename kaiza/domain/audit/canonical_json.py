"""Canonical JSON (RFC 8785) for hashing, restricted to a profile in which orjson produces exactly those bytes.

The profile: ASCII keys, no floats, integers below 2**53, no lone surrogates. RFC 8785 sorts keys by UTF-16 code units
and has its own number format; inside the profile neither differs from what orjson does.
"""

from collections.abc import Iterable, Mapping
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
DOUBLED_BACKSLASHES = 2
"""`detail.escaping` of records in which a literal backslash is doubled in the members that were escaped."""


def encode(value: Any) -> bytes:
    """Encode a value; ValueError if it is outside the profile."""
    try:
        encoded = orjson.dumps(value, option=_STRICT_OPTIONS)
    except orjson.JSONEncodeError as error:
        raise ValueError(f"outside the profile: {error}") from error
    if not _is_in_profile((value,), _SEQUENCE_TYPES, has_ascii_keys=encoded.isascii()):
        raise ValueError("outside the profile: a float, a key that is not ASCII, or a type JSON does not have")
    return encoded


def encode_unchecked(value: dict[str, Any]) -> bytes:
    """Encode members known to be inside the profile. Only the size of integers is checked."""
    return orjson.dumps(value, option=_CANONICAL_OPTIONS)


def decode(encoded: bytes) -> dict[str, Any] | None:
    """Decode an object; None unless the bytes are its canonical form."""
    try:
        value = orjson.loads(encoded)
        # Encoding again is what detects duplicate keys, blanks, escapes and unsorted keys.
        if type(value) is not dict or orjson.dumps(value, option=_CANONICAL_OPTIONS) != encoded:
            return None
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None
    return value if _is_in_profile((value,), _SEQUENCE_TYPES, has_ascii_keys=encoded.isascii()) else None


def _is_in_profile(items: Iterable[Any], sequences: frozenset[type], *, has_ascii_keys: bool) -> bool:
    """Whether values that orjson could encode contain no float, non-ASCII key or other type.

    `has_ascii_keys`: the whole encoding is ASCII, and so are the keys: no mapping needs to be checked.
    """
    for item in items:
        if item is None:
            continue
        kind = type(item)
        if kind is str or kind is int or kind is bool:
            continue
        if kind is dict:
            if not has_ascii_keys and not all(map(str.isascii, item)):
                return False
            if not _is_in_profile(item.values(), sequences, has_ascii_keys=has_ascii_keys):
                return False
        elif kind not in sequences or not _is_in_profile(item, sequences, has_ascii_keys=has_ascii_keys):
            return False
    return True


def to_recordable(value: Any) -> tuple[Any, tuple[str, ...]]:
    r"""Convert a value into the profile. Returns it with the dotted paths of everything that had to be changed.

    Bytes of a file name that are not UTF-8 (lone surrogates from `os.fsdecode`) and U+007F become `\xNN`, other lone
    surrogates `\uNNNN`; in such a text a literal backslash is doubled. Keys are made ASCII, and a backslash in one is
    doubled always. Floats and integers from 2**53 become text. `recorded_names` has the inverse.
    """
    if _is_recordable(value):
        return value, ()
    changed_paths: list[str] = []
    converted = _recordable_value(value, "", changed_paths, 0)
    return converted, tuple(changed_paths)


def _is_recordable(value: Any) -> bool:
    """Whether the value is in the profile as it is; true for nearly every record."""
    try:
        encoded = orjson.dumps(value, option=_STRICT_OPTIONS)
    except orjson.JSONEncodeError:
        return False
    # U+007F is inside the profile, but jq escapes it: the one-line verifier in the docs would get another hash.
    if b"\x7f" in encoded or not _is_in_profile((value,), _LIST_TYPES, has_ascii_keys=encoded.isascii()):
        return False
    return b"\\" not in encoded or _has_plain_keys(value)


def _has_plain_keys(value: Any) -> bool:
    """Whether no key has a backslash. The value is in the profile."""
    if isinstance(value, dict):
        return not any("\\" in key for key in value) and all(map(_has_plain_keys, value.values()))
    return not isinstance(value, list) or all(map(_has_plain_keys, value))


def _recordable_value(value: Any, path: str, changed_paths: list[str], depth: int) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if isinstance(value, str):
        text = value if kind is str else str.__str__(value)
        # The cheap questions first: nearly every text is ASCII, and printable text has no surrogates.
        is_encodable = text.isascii() or text.isprintable() or not any("\ud800" <= each <= "\udfff" for each in text)
        if is_encodable and _DELETE not in text:
            return text
        changed_paths.append(path)
        return "".join(map(_escape_character, text.replace("\\", "\\\\")))
    if isinstance(value, int):
        integer = int(value)
        if -_MAX_INTEGER <= integer <= _MAX_INTEGER:
            return integer
    if depth > _MAX_DEPTH:
        raise ValueError("too deep to be recorded")
    return _recordable_container(value, path, changed_paths, depth)


def _recordable_container(value: Any, path: str, changed_paths: list[str], depth: int) -> Any:
    if isinstance(value, Mapping):
        return _recordable_members(value, path, changed_paths, depth)
    if isinstance(value, list | tuple):
        return [
            _recordable_value(item, _join_path(path, index), changed_paths, depth + 1)
            for index, item in enumerate(value)
        ]
    if isinstance(value, int | float):
        changed_paths.append(path)
        return repr(value)
    raise ValueError(f"a {type(value).__name__} cannot be recorded")


def _recordable_members(value: Mapping[Any, Any], path: str, changed_paths: list[str], depth: int) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, item in value.items():
        name = str(key)
        if not name.isascii() or _DELETE in name or "\\" in name:
            # Also a backslash alone: a mapping may have a name that looks like an escape beside the one that has it.
            doubled = name.replace("\\", "\\\\").encode("ascii", "backslashreplace").decode("ascii")
            name = doubled.replace(_DELETE, "\\x7f")
            changed_paths.append(_join_path(path, name))
        while name in members:
            name += "~"
        members[name] = _recordable_value(item, _join_path(path, name), changed_paths, depth + 1)
    return members


def _join_path(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def _escape_character(character: str) -> str:
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    if character == _DELETE:
        return "\\x7f"
    return f"\\u{ord(character):04x}" if "\ud800" <= character <= "\udfff" else character
