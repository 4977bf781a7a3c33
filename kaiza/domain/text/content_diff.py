"""Changed spans of two file contents, by lines and by bytes.

Memory depends on the lines that may differ, not on the size of the file: the equal lines at both ends are never listed.
"""

import io
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kaiza.domain.text.line_diff import ChangedSpan, diff_lines

MAX_LINES = 500_000
"""Lines of both sides that are compared in one place, for some 100 MB of memory. More lines count as replaced."""
_BLOCK_BYTES = 1 << 16
_LF = b"\n"


class ContentSpan(NamedTuple):
    """One change, as numbers of lines and as offsets of bytes. It consists of whole lines."""

    lines: ChangedSpan
    bytes: ChangedSpan


def diff_contents(old: bytes, new: bytes, replaced: Iterable[ChangedSpan] = ()) -> Iterator[ContentSpan]:
    """Yield the spans in which the two differ, in order.

    `replaced`: the byte ranges that were replaced, in order, where they are known. They are used where the lines from
    the first to the last difference are too many to be compared.
    """
    line = new_line = at = new_at = 0
    for window in _changed_windows(old, new, replaced):
        line += old.count(_LF, at, window.old_start)
        new_line += new.count(_LF, new_at, window.new_start)
        yield from _diff_window(old, new, window, line, new_line)
        at, new_at = window.old_start, window.new_start


def _changed_windows(old: bytes, new: bytes, replaced: Iterable[ChangedSpan]) -> list[ChangedSpan]:
    whole = _find_difference(old, new)
    if whole.is_empty:
        return []
    known = list(replaced)
    return _extend_to_lines(old, known) if known and sum(_line_counts(old, new, whole)) > MAX_LINES else [whole]


def _find_difference(old: bytes, new: bytes) -> ChangedSpan:
    """Bytes of the lines from the first to the last that differ."""
    size = min(len(old), len(new))
    start = old.rfind(_LF, 0, _common_prefix(old, new, size)) + 1
    tail = _common_suffix(old, new, size - start)
    old_end, new_end = len(old) - tail, len(new) - tail
    if _starts_line(old, start, old_end) and _starts_line(new, start, new_end):
        return ChangedSpan(start, old_end, start, new_end)
    line_break = old.find(_LF, old_end)
    equal = len(old) - line_break - 1 if line_break >= 0 else 0
    return ChangedSpan(start, len(old) - equal, start, len(new) - equal)


def _starts_line(content: bytes, start: int, at: int) -> bool:
    return at == start or content[at - 1 : at] == _LF


def _common_prefix(old: bytes, new: bytes, most: int) -> int:
    """Number of equal bytes at the start, by comparing ever smaller blocks."""
    at, block = 0, _BLOCK_BYTES
    while block:
        while at + block <= most and old[at : at + block] == new[at : at + block]:
            at += block
        block //= 2
    return at


def _common_suffix(old: bytes, new: bytes, most: int) -> int:
    at, block = 0, _BLOCK_BYTES
    while block:
        while (
            at + block <= most
            and old[len(old) - at - block : len(old) - at] == new[len(new) - at - block : len(new) - at]
        ):
            at += block
        block //= 2
    return at


def _extend_to_lines(old: bytes, replaced: Iterable[ChangedSpan]) -> list[ChangedSpan]:
    """The ranges with the rest of their lines; those that share a line are joined."""
    windows: list[ChangedSpan] = []
    for span in replaced:
        start = old.rfind(_LF, 0, span.old_start) + 1
        line_break = old.find(_LF, span.old_end)
        end = len(old) if line_break < 0 else line_break + 1
        window = ChangedSpan(start, end, span.new_start - (span.old_start - start), span.new_end + (end - span.old_end))
        if windows and start < windows[-1].old_end:
            last = windows.pop()
            window = ChangedSpan(last.old_start, window.old_end, last.new_start, window.new_end)
        windows.append(window)
    return windows


def _diff_window(old: bytes, new: bytes, window: ChangedSpan, line: int, new_line: int) -> Iterator[ContentSpan]:
    """The spans in one window, whose first lines have these numbers."""
    count, new_count = _line_counts(old, new, window)
    if count + new_count > MAX_LINES:
        yield ContentSpan(ChangedSpan(line, line + count, new_line, new_line + new_count), window)
        return
    before = io.BytesIO(old[window.old_start : window.old_end]).readlines()
    after = io.BytesIO(new[window.new_start : window.new_end]).readlines()
    row, column, at, new_at = 0, 0, window.old_start, window.new_start
    for span in diff_lines(before, after):
        start = at + sum(map(len, before[row : span.old_start]))
        new_start = new_at + sum(map(len, after[column : span.new_start]))
        row, column = span.old_end, span.new_end
        at = start + sum(map(len, before[span.old_start : row]))
        new_at = new_start + sum(map(len, after[span.new_start : column]))
        numbers = ChangedSpan(line + span.old_start, line + row, new_line + span.new_start, new_line + column)
        yield ContentSpan(numbers, ChangedSpan(start, at, new_start, new_at))


def _line_counts(old: bytes, new: bytes, window: ChangedSpan) -> tuple[int, int]:
    return (
        _count_lines(old, window.old_start, window.old_end),
        _count_lines(new, window.new_start, window.new_end),
    )


def _count_lines(content: bytes, start: int, end: int) -> int:
    return content.count(_LF, start, end) + (end > start and content[end - 1 : end] != _LF)
