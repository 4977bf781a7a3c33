"""Strict JSON decoder for one line. Rejects whatever two parsers might read differently.

Rejected besides malformed JSON: invalid UTF-8, duplicate keys, NaN and infinities, numbers beyond 64 bits, lone
surrogates, and deep nesting.
"""

import json
from typing import Any, Final

MAX_LINE: Final = 1 << 20
"""Longest request line in bytes, without its newline."""

MAX_DEPTH: Final = 100
"""Deepest nesting of objects and arrays."""

_INTEGER_BOUND: Final = 1 << 63
# `int` takes quadratic time on long digit strings.
_MAX_DIGITS: Final = 64


def decode(line: bytes) -> object:
    """Decode the line; ValueError if it is not exactly one strict JSON value."""
    try:
        value: object = _DECODER.decode(line.decode())
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    # Counting brackets is a cheap upper bound of the depth; few lines need the exact one.
    if line.count(b"{") + line.count(b"[") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if b"\\ud" in line or b"\\uD" in line:
        json.dumps(value, ensure_ascii=False).encode()  # UnicodeEncodeError, a ValueError, on a lone surrogate
    return value


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate key")
    return members


def _parse_integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS or not -_INTEGER_BOUND <= (number := int(digits)) < _INTEGER_BOUND:
        raise ValueError("integer beyond 64 bits")
    return number


def _parse_float(digits: str) -> float:
    number = float(digits)
    if number - number != 0:  # true for infinities only
        raise ValueError("number beyond 64 bits")
    return number


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


# `json`, not `orjson`: orjson accepts duplicate keys and turns large integers into floats.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique_members,
    parse_int=_parse_integer,
    parse_float=_parse_float,
    parse_constant=_reject_constant,
)


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return depth
