"""Response size budget. Output counts twice: as structured content and as its JSON text.

In the text block the JSON is a string, so its quotes and backslashes are escaped once more.
"""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import orjson

from kaiza.domain.paging import cursor
from kaiza.domain.paging.cursor import CursorKey

RESERVED_BYTES = 4096
"""Reserved for the rest of the message: its id, its receipt and its member names."""

MIN_BYTE_COST = 2
"""Bytes that one byte of text adds at least."""

_BLOCK = 4096
# Characters by the length of their JSON escape: one backslash, a letter escape, or \u00XX.
_QUOTED = b'"\\'
_SHORT = b"\b\t\n\f\r"
_LONG = bytes(code for code in range(0x20) if code not in _SHORT)


def response_bytes(value: object) -> int:
    """Bytes that a value adds to a response."""
    structured = orjson.dumps(value)
    return len(structured) + len(orjson.dumps(structured.decode())) - 2  # the quotes of the text are not its own


def text_response_bytes(text: bytes) -> int:
    """Bytes that this UTF-8 text adds to a response as part of a string."""
    size = len(text)
    quoted = size - len(text.translate(None, _QUOTED))
    short = size - len(text.translate(None, _SHORT))
    long = size - len(text.translate(None, _LONG))
    return MIN_BYTE_COST * size + 4 * quoted + 3 * short + 11 * long


def longest_fitting_prefix(text: bytes, space: int) -> int:
    """Length of the longest prefix that adds at most `space` bytes to a response."""
    end = 0
    while end < len(text):
        block = text[end : end + _BLOCK]
        cost = text_response_bytes(block)
        if cost > space:
            return end + bisect_right(range(1, len(block)), space, key=lambda size: text_response_bytes(block[:size]))
        space -= cost
        end += len(block)
    return end


class PageBuilder:
    """Collects the items of a page up to a number of items and a response size."""

    def __init__(self, max_items: int, max_bytes: int, frame: Mapping[str, Any] | None = None) -> None:
        self.items: list[dict[str, Any]] = []
        self.last_key: CursorKey = ()
        self._max_items = max_items
        self._bytes_left = max_bytes - RESERVED_BYTES - response_bytes(frame or {})

    def add(self, item: dict[str, Any], key: CursorKey = ()) -> bool:
        """Add an item and its cursor key; False if the page is full.

        An empty page takes an item of any size, so that a listing always makes progress.
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
