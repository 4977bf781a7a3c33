"""What a value weighs in a response, where it stands twice: as structured content and as the text of that."""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import orjson

from kaiza.domain import cursor
from kaiza.domain.cursor import Key

RESERVE = 4096
"""What is kept free for the message around the output: its id, its receipt, its own names."""

LIGHTEST = 2
"""No byte of text weighs less."""

_BLOCK = 4096
_QUOTED = b'"\\'
_SHORT = b"\b\t\n\f\r"
_LONG = bytes(code for code in range(0x20) if code not in _SHORT)


def weight(value: object) -> int:
    """How many bytes a value adds to a response."""
    once = orjson.dumps(value)
    return len(once) + len(orjson.dumps(once.decode())) - 2


def text_weight(text: bytes) -> int:
    """How many bytes the characters of this UTF-8 text add, without the quotes around them."""
    size = len(text)
    quoted = size - len(text.translate(None, _QUOTED))
    short = size - len(text.translate(None, _SHORT))
    long = size - len(text.translate(None, _LONG))
    return LIGHTEST * size + 4 * quoted + 3 * short + 11 * long


def fitting(text: bytes, space: int) -> int:
    """The length of the longest beginning of a text that weighs at most `space`."""
    end = 0
    while end < len(text):
        block = text[end : end + _BLOCK]
        adds = text_weight(block)
        if adds > space:
            return end + bisect_right(range(1, len(block)), space, key=lambda size: text_weight(block[:size]))
        space -= adds
        end += len(block)
    return end


class Page:
    """A page being filled: it is full when the next item would be one too many or too heavy."""

    def __init__(self, most: int, response_bytes: int, frame: Mapping[str, Any] | None = None) -> None:
        self.items: list[dict[str, Any]] = []
        self.last: Key = ()
        self._most = most
        self._space = response_bytes - RESERVE - weight(frame or {})

    def add(self, item: dict[str, Any], key: Key = ()) -> bool:
        """Take an item in, with the key that a cursor after it would carry; False where it does not fit.

        An empty page takes any item, so that a listing always goes on.
        """
        if len(self.items) >= self._most:
            return False
        left = self._space - weight(item) - LIGHTEST
        if self.items and left < cursor.heaviest(key):
            return False
        self._space = left
        self.items.append(item)
        self.last = key
        return True
