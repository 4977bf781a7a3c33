"""One line becomes one JSON value, strictly: what two readers could read differently is not read at all.

Refused beside plain nonsense: bytes that are not UTF-8, a key that occurs twice, NaN and the infinities,
numbers that 64 bits do not hold, half a surrogate pair, and nesting that no request needs.
"""

import json
from typing import Any, Final

MAX_LINE: Final = 1 << 20
"""The longest request line, in bytes, without its newline."""

MAX_DEPTH: Final = 100
"""How deep objects and arrays may be nested."""

_INTEGER_BOUND: Final = 1 << 63
_MAX_DIGITS: Final = 64


def decode(line: bytes) -> object:
    """The value that the line stands for; a ValueError where there is none, or more than one."""
    try:
        value: object = _DECODER.decode(line.decode())
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if line.count(b"{") + line.count(b"[") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if b"\\ud" in line or b"\\uD" in line:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key occurs twice")
    return members


def _parse_integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS or not -_INTEGER_BOUND <= (number := int(digits)) < _INTEGER_BOUND:
        raise ValueError("an integer beyond 64 bits")
    return number


def _parse_float(digits: str) -> float:
    number = float(digits)
    if number - number != 0:
        raise ValueError("a number beyond 64 bits")
    return number


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


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
