"""Text and regular expression search, line by line, in linear time (RE2)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import re2

from kaiza.domain import errors
from kaiza.domain.text.lines import LF, LineChunk, count_characters

_RE2_OPTIONS = re2.Options()
_RE2_OPTIONS.max_mem = 4 << 20
_RE2_OPTIONS.log_errors = False
_RE2_OPTIONS.never_capture = True
_RE2_OPTIONS.never_nl = True
# These can tell the start or end of a line from that of the searched data: \A, \z and switched-off multi-line mode.
_NEEDS_LINE_BY_LINE = re.compile(r"\\[Az]|\(\?[a-zA-Z]*-[a-zA-Z]*m")

ByteSpan = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One match: line and characters in the file, and byte offsets in the chunk."""

    line: int
    start: int
    end: int
    byte_start: int
    line_start: int
    line_end: int


class Matcher(Protocol):
    """Finds matches in a chunk of lines. A match never spans two lines."""

    def spans(self, data: bytes, begin: int, end: int, max_count: int) -> Iterator[ByteSpan]:
        """Byte spans of the matches in order, without overlap."""
        ...


@dataclass(frozen=True, slots=True)
class LiteralMatcher:
    """Finds an exact byte string."""

    text: bytes

    def spans(self, data: bytes, begin: int, end: int, max_count: int) -> Iterator[ByteSpan]:
        """Byte spans of the matches."""
        size = len(self.text)
        at = data.find(self.text, begin, end)
        while at >= 0 and max_count:
            yield at, at + size
            max_count -= 1
            at = data.find(self.text, at + size, end)


@dataclass(frozen=True, slots=True)
class RegexMatcher:
    """Finds matches of an RE2 expression: the non-empty ones of each line, or one empty match."""

    pattern: "re2._Regexp"
    line_by_line: bool

    def spans(self, data: bytes, begin: int, end: int, max_count: int) -> Iterator[ByteSpan]:
        """Byte spans of the matches."""
        while begin < end and max_count > 0:
            if not self.line_by_line:
                # One search over the rest finds the next line with a match, so that lines without any cost nothing.
                first = self.pattern.search(data, begin, end)
                if first is None:
                    return
                begin = data.rfind(LF, begin, first.start()) + 1 or begin
            line_end = data.find(LF, begin, end)
            line_end = end if line_end < 0 else line_end
            found = self._spans_in_line(data, begin, line_end, max_count)
            yield from found
            max_count -= len(found)
            begin = line_end + 1

    def _spans_in_line(self, data: bytes, begin: int, end: int, max_count: int) -> list[ByteSpan]:
        if self.line_by_line:
            matches, offset = self.pattern.finditer(data[begin:end]), begin
        else:
            matches, offset = self.pattern.finditer(data, begin, end), 0
        spans = [(offset + match.start(), offset + match.end()) for match in islice(matches, max_count)]
        return [span for span in spans if span[0] < span[1]] or spans[:1]


def make_matcher(query: str, *, regex: bool, ignore_case: bool) -> Matcher:
    """Matcher of a query; INVALID_INPUT_VALUE if the query cannot match or is not an RE2 expression."""
    if "\n" in query:
        raise _invalid_query("The query has a line break, which no line contains. Search for the text of one line.")
    try:
        text = query.encode()
    except UnicodeEncodeError:
        raise _invalid_query("The query has a lone surrogate, which is not valid text. Remove it.") from None
    if not regex and not ignore_case:
        return LiteralMatcher(text)
    source = text if regex else re2.escape(text)
    try:
        program = re2._Regexp((b"(?mi)" if ignore_case else b"(?m)") + source, _RE2_OPTIONS)  # noqa: SLF001  no cache
    except re2.error:
        raise _invalid_query("The query is not a valid RE2 expression. Correct it, or search without regex.") from None
    return RegexMatcher(program, regex and _NEEDS_LINE_BY_LINE.search(query) is not None)


def find_hits(chunk: LineChunk, matcher: Matcher, max_hits: int) -> Iterator[SearchHit]:
    """Matches in the lines of a chunk that are to be searched, in order."""
    data = chunk.data
    number, counted = chunk.first_line, 0
    line_start, line_end, measured, column = 0, -1, 0, 0
    for begin, end in matcher.spans(data, chunk.begin, chunk.end, max_hits):
        if begin > line_end:
            line_start = data.rfind(LF, 0, begin) + 1
            line_end = data.find(LF, begin)
            line_end = len(data) if line_end < 0 else line_end
            number += data.count(LF, counted, line_start)
            counted = measured = line_start
            column = 0
        column += count_characters(data[measured:begin])
        measured = begin
        width = count_characters(data[begin:end])
        yield SearchHit(number, column, column + width, begin, line_start, line_end)


def _invalid_query(sentence: str) -> errors.SystemError:
    return errors.SystemError.tool_failure("INVALID_INPUT_VALUE", human_message=sentence, cause={"argument": "query"})
