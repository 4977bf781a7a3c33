"""Which lines of a file a rule looks at: those where one quick search stops, and of them those that were added."""

from collections.abc import Container, Iterable, Iterator
from typing import TypeVar

import re2

_MAX_MEMORY = 8 << 20
_LF = b"\n"

_T = TypeVar("_T")
AddedLines = Container[int] | None
"""The numbers of the lines that were added, from 0; None means that all are new. To ask it may cost a comparison."""


def compile_patterns(*shapes: bytes) -> "re2._Regexp":
    """What finds any of these shapes in bytes, the first of them first, in time linear in the bytes."""
    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    return re2._Regexp(b"|".join(b"(?:" + shape + b")" for shape in shapes), options)  # noqa: SLF001  uncached


def is_added(line: int, added: AddedLines) -> bool:
    """Whether this line was added."""
    return added is None or line in added


def overlapping_added(found: Iterable[tuple[int, int, _T]], added: AddedLines) -> Iterator[_T]:
    """Of what is found from a first to a last line, what touches an added one; in order of the first lines.

    No line is asked for twice, however deep these stand in each other.
    """
    line = 0
    for first, last, what in found:
        line = max(line, first)
        while line <= last and not is_added(line, added):
            line += 1
        if line <= last:
            yield what


def find_suspect_lines(found: "re2._Regexp", data: bytes, added: AddedLines) -> Iterator[tuple[int, bytes]]:
    """The added lines in which something that the program finds begins, and their numbers."""
    number = counted = at = 0
    while at < len(data) and (match := found.search(data, at)) is not None:
        begin = data.rfind(_LF, at, match.start()) + 1 or at
        end = data.find(_LF, begin)
        end = len(data) if end < 0 else end
        number += data.count(_LF, counted, begin)
        if is_added(number, added):
            yield number, data[begin:end]
        counted = begin
        at = end + 1


def locate_positions(data: bytes, positions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The line and the column, in characters, of each of these positions; they come in order."""
    line = column = passed = 0
    for position in positions:
        begin = data.rfind(_LF, passed, position) + 1
        if begin:
            line += data.count(_LF, passed, begin)
            column, passed = 0, begin
        column += len(data[passed:position].decode("utf-8", "replace"))
        passed = position
        yield line, column
