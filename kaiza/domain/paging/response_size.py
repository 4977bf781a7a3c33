"""What a value weighs in a response, where it stands twice: as structured content and as the text of that."""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import orjson

from kaiza.domain.paging import cursor
from kaiza.domain.paging.cursor import CursorKey

RESERVED_BYTES = 4096
"""What is kept free for the message around the output: its id, its receipt, its own names."""

MIN_BYTE_COST = 2
"""No byte of text weighs less."""

_BLOCK = 4096
_QUOTED = b'"\\'
_SHORT = b"\b\t\n\f\r"
_LONG = bytes(code for code in range(0x20) if code not in _SHORT)


def response_bytes(value: object) -> int:
    """How many bytes a value adds to a response."""
    once = orjson.dumps(value)
    return len(once) + len(orjson.dumps(once.decode())) - 2


def text_response_bytes(text: bytes) -> int:
    """How many bytes the characters of this UTF-8 text add, without the quotes around them."""
    size = len(text)
    quoted = size - len(text.translate(None, _QUOTED))
    short = size - len(text.translate(None, _SHORT))
    long = size - len(text.translate(None, _LONG))
    return MIN_BYTE_COST * size + 4 * quoted + 3 * short + 11 * long


def longest_fitting_prefix(text: bytes, space: int) -> int:
    """The length of the longest beginning of a text that weighs at most `space`."""
    end = 0
    while end < len(text):
        block = text[end : end + _BLOCK]
        adds = text_response_bytes(block)
        if adds > space:
            return end + bisect_right(range(1, len(block)), space, key=lambda size: text_response_bytes(block[:size]))
        space -= adds
        end += len(block)
    return end


class PageBuilder:
    """A page being filled: it is full when the next item would be one too many or too heavy."""

    def __init__(self, most: int, max_bytes: int, frame: Mapping[str, Any] | None = None) -> None:
        self.items: list[dict[str, Any]] = []
        self.last_key: CursorKey = ()
        self._max_items = most
        self._bytes_left = max_bytes - RESERVED_BYTES - response_bytes(frame or {})

    def add(self, item: dict[str, Any], key: CursorKey = ()) -> bool:
        """Take an item in, with the key that a cursor after it would carry; False where it does not fit.

        An empty page takes any item, so that a listing always goes on.
        """
        if len(self.items) >= self._max_items:
            return False
        left = self._bytes_left - response_bytes(item) - MIN_BYTE_COST
        if self.items and left < cursor.max_response_bytes(key):
            return False
        self._bytes_left = left
        self.items.append(item)
        self.last_key = key
        return True
