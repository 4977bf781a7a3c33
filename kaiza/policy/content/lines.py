"""Line scanner of the content rules: finds the suspect lines of a file and keeps those that were added.

One linear search finds lines that may break a rule, and only these are examined. Most files have none, so scanning
them costs one pass, and what was added need not be worked out.
"""

import re
from collections.abc import Container, Iterable, Iterator
from typing import TypeVar

import re2

_MAX_MEMORY = 8 << 20
_LF = b"\n"

_T = TypeVar("_T")
AddedLines = Container[int] | None
"""Numbers of the added lines, from 0; None if all lines are new. The first `in` may compute a diff."""


def compile_patterns(*patterns: bytes) -> "re2._Regexp":
    """One RE2 program that finds any of these patterns in bytes, in linear time."""
    # Latin-1 makes each byte one character: content need not be UTF-8.
    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    return re2._Regexp(b"|".join(b"(?:" + pattern + b")" for pattern in patterns), options)  # noqa: SLF001  no cache


def is_added(line: int, added: AddedLines) -> bool:
    """Whether the line was added."""
    return added is None or line in added


def overlapping_added(found: Iterable[tuple[int, int, _T]], added: AddedLines) -> Iterator[_T]:
    """Items of (first line, last line, item) that overlap an added line. They must be ordered by first line."""
    # The scan never goes back, so nested items do not make it quadratic: each line is checked once.
    line = 0
    for first, last, item in found:
        line = max(line, first)
        while line <= last and not is_added(line, added):
            line += 1
        if line <= last:
            yield item


def find_suspect_lines(pattern: "re2._Regexp", data: bytes, added: AddedLines) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of each added line in which a match begins."""
    number = counted = at = 0
    while at < len(data) and (match := pattern.search(data, at)) is not None:
        begin = data.rfind(_LF, at, match.start()) + 1 or at
        end = data.find(_LF, begin)
        end = len(data) if end < 0 else end
        number += data.count(_LF, counted, begin)
        if is_added(number, added):
            yield number, data[begin:end]
        counted = begin
        at = end + 1


def locate_positions(data: bytes, positions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Line and column, in characters, of byte positions. The positions must be in ascending order."""
    line = column = counted = 0
    for position in positions:
        begin = data.rfind(_LF, counted, position) + 1
        if begin:
            line += data.count(_LF, counted, begin)
            column, counted = 0, begin
        column += len(data[counted:position].decode("utf-8", "replace"))
        counted = position
        yield line, column


NOTE_MARK = re.compile(r"\b(TODO|FIXME)\b")
NOTE_SEARCH = compile_patterns(rb"TODO|FIXME")
"""Finds every line with a mark, and some without."""


def find_note(line: str, comment_start: re.Pattern[str]) -> int | None:
    """Column of the line's first comment, if a TODO or FIXME follows it."""
    comment = comment_start.search(line)
    return comment.start() if comment and NOTE_MARK.search(line, comment.end()) else None
