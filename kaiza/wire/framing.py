"""Strict JSON decoder for one line. Refuses what is not JSON, or what two parsers might read differently.

Refused besides malformed JSON: invalid UTF-8, duplicate keys, NaN and infinities. Refused although it is JSON: what
is nested deeper, or holds more values, than any request needs. Numbers beyond 64 bits and lone surrogates are decoded:
whoever uses such a value refuses it, and so can say which one it is.
"""

import json
from typing import Any, Final, Literal

from kaiza.wire.numbers import parse_float, parse_integer
from kaiza.wire.outline import Outline

MAX_LINE: Final = 16 << 20
"""Longest request line in bytes, without its newline."""

MAX_DEPTH: Final = 100
"""Deepest nesting of objects and arrays."""

MAX_VALUES: Final = 100_000
"""Values in one request, as an outline counts them."""

RefusalKind = Literal["json", "depth", "values"]


class RefusedLineError(ValueError):
    """Why a line is not decoded."""

    def __init__(self, kind: RefusalKind, outline: Outline) -> None:
        super().__init__(kind)
        self.kind: Final = kind
        self.outline: Final = outline
        """Outline of the line, up to the place where its structure breaks."""


def decode(line: bytes) -> object:
    """Decode the line; RefusedLineError if it is not exactly one strict JSON value."""
    _check_size(line)
    try:
        value: object = _DECODER.decode(line.decode())
    except ValueError as error:
        raise RefusedLineError("json", _outline(line[: _find_break(line)])) from error
    return value


def decode_again(line: bytes) -> object:
    """Decode a line that `decode` has accepted."""
    value: object = _DECODER.decode(line.decode())
    return value


def _find_break(line: bytes) -> int | None:
    """Number of bytes before the structure of a refused line breaks; None if only values are at fault."""
    text = line.decode(errors="surrogateescape")
    # The structure of a line goes on behind a byte order mark.
    mark = text[: text.startswith("\ufeff")]
    try:
        _LENIENT_DECODER.decode(text.removeprefix(mark))
    except json.JSONDecodeError as error:
        return len(text[: len(mark) + error.pos].encode(errors="surrogateescape"))
    return None


def _check_size(line: bytes) -> None:
    """Refuse a line that is nested too deeply or has too many values, before any time is spent on decoding it."""
    # Counting brackets and commas is a cheap upper bound of both; few lines need the exact numbers.
    brackets = line.count(b"{") + line.count(b"[")
    if brackets <= MAX_DEPTH and brackets + line.count(b",") < MAX_VALUES:
        return
    outline = _outline(line)
    if outline.depth > MAX_DEPTH:
        raise RefusedLineError("depth", outline)
    if outline.values > MAX_VALUES:
        raise RefusedLineError("values", outline)


def _outline(line: bytes) -> Outline:
    outline = Outline()
    outline.feed(line)
    return outline


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate key")
    return members


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


# `json`, not `orjson`: orjson accepts duplicate keys and turns large integers into floats.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique_members,
    parse_int=parse_integer,
    parse_float=parse_float,
    parse_constant=_reject_constant,
)
_LENIENT_DECODER: Final = json.JSONDecoder(parse_int=parse_integer, strict=False)
