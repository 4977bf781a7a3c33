"""Where a text or an expression occurs, line by line; in time linear in what is searched."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import re2

from kaiza.domain import errors
from kaiza.domain.text.lines import LF, LineChunk, count_characters

_MAX_MEMORY = 4 << 20
_NEEDS_LINE_BY_LINE = re.compile(r"\\[Az]|\(\?[a-zA-Z]*-[a-zA-Z]*m")
"""Expressions that could tell a line from a part of a text; they are held against each line alone."""

ByteSpan = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One occurrence: its line, its characters in it, and where these are among the bytes of the stretch."""

    line: int
    start: int
    end: int
    byte_start: int
    line_start: int
    line_end: int


class Matcher(Protocol):
    """Finds occurrences in some lines; none reaches over the end of a line."""

    def spans(self, data: bytes, begin: int, end: int, most: int) -> Iterator[ByteSpan]:
        """Where they are, in order, without overlap."""
        ...


@dataclass(frozen=True, slots=True)
class LiteralMatcher:
    """Finds a text as it is written."""

    text: bytes

    def spans(self, data: bytes, begin: int, end: int, most: int) -> Iterator[ByteSpan]:
        """Where it stands."""
        size = len(self.text)
        at = data.find(self.text, begin, end)
        while at >= 0 and most:
            yield at, at + size
            most -= 1
            at = data.find(self.text, at + size, end)


@dataclass(frozen=True, slots=True)
class RegexMatcher:
    """Finds what an expression matches: of each line all that is not empty, else one empty match."""

    pattern: "re2._Regexp"
    line_by_line: bool

    def spans(self, data: bytes, begin: int, end: int, most: int) -> Iterator[ByteSpan]:
        """Where it matches."""
        while begin < end and most > 0:
            if not self.line_by_line:
                first = self.pattern.search(data, begin, end)
                if first is None:
                    return
                begin = data.rfind(LF, begin, first.start()) + 1 or begin
            line_end = data.find(LF, begin, end)
            line_end = end if line_end < 0 else line_end
            found = self._spans_in_line(data, begin, line_end, most)
            yield from found
            most -= len(found)
            begin = line_end + 1

    def _spans_in_line(self, data: bytes, begin: int, end: int, most: int) -> list[ByteSpan]:
        if self.line_by_line:
            spans = [
                (begin + low, begin + high) for low, high in self._find_matches(data[begin:end], 0, end - begin, most)
            ]
        else:
            spans = self._find_matches(data, begin, end, most)
        return [span for span in spans if span[0] < span[1]] or spans[:1]

    def _find_matches(self, data: bytes, begin: int, end: int, most: int) -> list[ByteSpan]:
        return [match.span() for match in islice(self.pattern.finditer(data, begin, end), most)]


def make_matcher(query: str, *, regex: bool, ignore_case: bool) -> Matcher:
    """What finds a query; INVALID_INPUT_VALUE if it can find nothing, or is no expression."""
    if "\n" in query:
        raise _invalid_query("A line never holds a line break. Search for the text of one line.")
    try:
        text = query.encode()
    except UnicodeEncodeError:
        raise _invalid_query("The query holds a lone surrogate. Search for characters.") from None
    if not regex and not ignore_case:
        return LiteralMatcher(text)
    source = text if regex else re2.escape(text)
    try:
        program = re2._Regexp((b"(?mi)" if ignore_case else b"(?m)") + source, _re2_options())  # noqa: SLF001  uncached
    except re2.error:
        raise _invalid_query("The query is not an RE2 expression. Correct it, or search without regex.") from None
    return RegexMatcher(program, regex and _NEEDS_LINE_BY_LINE.search(query) is not None)


def find_hits(stretch: LineChunk, found: Matcher, most: int) -> Iterator[SearchHit]:
    """Every occurrence in the fresh lines of a stretch, in order."""
    data = stretch.data
    number, counted = stretch.first_line, 0
    line_begins, line_ends, passed, column = 0, -1, 0, 0
    for begin, end in found.spans(data, stretch.begin, stretch.end, most):
        if begin > line_ends:
            line_begins = data.rfind(LF, 0, begin) + 1
            line_ends = data.find(LF, begin)
            line_ends = len(data) if line_ends < 0 else line_ends
            number += data.count(LF, counted, line_begins)
            counted = passed = line_begins
            column = 0
        column += count_characters(data[passed:begin])
        passed = begin
        width = count_characters(data[begin:end])
        yield SearchHit(number, column, column + width, begin, line_begins, line_ends)


def _re2_options() -> re2.Options:
    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    options.log_errors = False
    options.never_capture = True
    options.never_nl = True
    return options


def _invalid_query(sentence: str) -> errors.SystemError:
    return errors.SystemError.tool_failure("INVALID_INPUT_VALUE", human_message=sentence, cause={"argument": "query"})
