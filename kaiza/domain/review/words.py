"""Word differences of a removed and an added line: the ranges of characters that differ."""

import re
from collections.abc import Iterator

from kaiza.domain.text.line_diff import diff_lines

MAX_LENGTH = 500
"""Longer lines are not compared by word."""
_MIN_SHARED = 0.4
_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)
Ranges = tuple[tuple[int, int], ...]


def compare_words(old: str, new: str) -> tuple[Ranges, Ranges]:
    """Ranges of the old and of the new line that differ; none if the lines share too little to be compared."""
    if max(len(old), len(new)) > MAX_LENGTH:
        return (), ()
    before, after = _WORD.findall(old), _WORD.findall(new)
    spans = diff_lines(
        [word.encode(errors="surrogatepass") for word in before],
        [word.encode(errors="surrogatepass") for word in after],
    )
    left = tuple(_ranges(before, [(span.old_start, span.old_end) for span in spans]))
    right = tuple(_ranges(after, [(span.new_start, span.new_end) for span in spans]))
    shared = len(old.strip()) - sum(end - start for start, end in left)
    return (left, right) if shared >= _MIN_SHARED * max(len(old.strip()), len(new.strip()), 1) else ((), ())


def _ranges(words: list[str], spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges of characters for ranges of words."""
    offsets = [0]
    for word in words:
        offsets.append(offsets[-1] + len(word))
    yield from ((offsets[start], offsets[end]) for start, end in spans if start < end)
