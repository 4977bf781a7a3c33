"""Size budget of an answer, counted as one JSON document or as the response that carries it twice.

Clients cut what is larger than they hand to a model, so an answer ends before: its document counts, which is the
structured content and the text alike. An answer that was asked to be longer ends before the response does: there the
document is in the text block once more, as a string whose quotes and backslashes are escaped again.
"""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from kaiza.domain.caps import Caps
from kaiza.domain.paging import cursor
from kaiza.domain.paging.cursor import CursorKey

RESERVED_BYTES = 4096
"""Reserved for the rest of the response: its id, its receipt and its member names."""
_CLOSING_BYTES = 1536
"""Reserved for the members that a tool adds last: a summary of 200 characters, and diagnostics."""

_BLOCK = 4096
# Characters by the length of their JSON escape: one backslash, a letter escape, or \u00XX.
_QUOTED = b'"\\'
_SHORT = b"\b\t\n\f\r"
_LONG = bytes(code for code in range(0x20) if code not in _SHORT)


def response_bytes(value: object) -> int:
    """Bytes that a value adds to a response."""
    structured = orjson.dumps(value)
    return len(structured) + len(orjson.dumps(structured.decode())) - 2  # the quotes of the text are not its own


class AnswerBudget(NamedTuple):
    """Largest size of an answer, and whether the bytes of both its copies count."""

    max_bytes: int
    is_doubled: bool = False

    @classmethod
    def choose(cls, caps: Caps, *, is_asked: bool = False) -> "AnswerBudget":
        """The size that clients hand on whole; if the caller asked for a length, the size of a response."""
        if is_asked:
            return cls(caps.response_bytes - RESERVED_BYTES, is_doubled=True)
        return cls(caps.answer_bytes - _CLOSING_BYTES)

    @property
    def min_byte_cost(self) -> int:
        """Bytes that one byte of text adds at least."""
        return 1 + self.is_doubled

    def count_bytes(self, value: object) -> int:
        """Bytes that a value adds."""
        return response_bytes(value) if self.is_doubled else len(orjson.dumps(value))

    def count_text_bytes(self, text: bytes) -> int:
        """Bytes that this UTF-8 text adds as part of a string."""
        size = len(text)
        quoted = size - len(text.translate(None, _QUOTED))
        short = size - len(text.translate(None, _SHORT))
        long = size - len(text.translate(None, _LONG))
        if self.is_doubled:
            return 2 * size + 4 * quoted + 3 * short + 11 * long
        return size + quoted + short + 5 * long

    def fit_text(self, text: bytes, space: int) -> int:
        """Length of the longest prefix that adds at most `space` bytes."""
        end = 0
        while end < len(text):
            block = text[end : end + _BLOCK]
            cost = self.count_text_bytes(block)
            if cost > space:
                return end + bisect_right(
                    range(1, len(block)), space, key=lambda size: self.count_text_bytes(block[:size])
                )
            space -= cost
            end += len(block)
        return end


class PageBuilder:
    """Collects the items of a page up to a number of items and a size."""

    def __init__(self, max_items: int, budget: AnswerBudget, frame: Mapping[str, Any] | None = None) -> None:
        self.items: list[dict[str, Any]] = []
        self.last_key: CursorKey = ()
        self._max_items = max_items
        self._budget = budget
        self._bytes_left = budget.max_bytes - budget.count_bytes(frame or {})

    def add(self, item: dict[str, Any], key: CursorKey = ()) -> bool:
        """Add an item and its cursor key; False if the page is full.

        An empty page takes an item of any size, so that a listing always makes progress.
        """
        if len(self.items) >= self._max_items:
            return False
        left = self._bytes_left - self._budget.count_bytes(item) - self._budget.min_byte_cost
        if self.items and left < self._budget.min_byte_cost * cursor.count_bytes(key):
            return False
        self._bytes_left = left
        self.items.append(item)
        self.last_key = key
        return True
