"""Collects the hits of one search: counts all of them in order, and builds those that are on the page."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kaiza.domain.paging.response_size import AnswerBudget, PageBuilder
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.paths.shown_names import escape_name
from kaiza.domain.text import lines, search
from kaiza.domain.text.lines import LF, LineChunk, LineTooLongError, excerpt
from kaiza.domain.text.search import Matcher, SearchHit
from kaiza.tools.handles import FileContent
from kaiza.tools.reading import file_reader
from kaiza.tools.reading.scan import require_hits_within_cap
from kaiza.tools.view import FilesView

MAX_LINE_BYTES = 16 << 20
"""A line is held whole to be searched; a longer one ends the search of its file."""
SKIPPED_BINARY = "Skipped, binary"
SKIPPED_TOO_LARGE = "Skipped, too large"
SKIPPED_LONG_LINE = "Skipped from a line on that is too long"
SKIPPED_PROTECTED = "Skipped, may not be read"
SHOWN_NOT_UTF8 = "Not UTF-8, invalid bytes shown as \ufffd"


@dataclass(frozen=True, slots=True)
class HitPosition:
    """Position of a hit in the order of all hits: path, line, character."""

    path: str
    line: int
    character: int

    def has_passed(self, path: str, hit: SearchHit) -> bool:
        """Whether a hit is at or before this position."""
        return path == self.path and (hit.line, hit.start) <= (self.line, self.character)


BEFORE_FIRST = HitPosition("", -1, -1)
"""Position before every hit."""


class HitCollector:
    """Page, count and notes of a search so far."""

    def __init__(self, matcher: Matcher, context_lines: int, page: PageBuilder, view: FilesView) -> None:
        self.page = page
        self.is_full = False
        self.count = 0
        self.notes: Counter[str] = Counter()
        self._matcher = matcher
        self._context_lines = context_lines
        self._view = view

    def search_file(self, real: RelPath, content: FileContent, after: HitPosition, *, enough: bool) -> None:
        """Search one file; with `enough`, stop at the first hit after the page is full."""
        if content.size > self._view.caps.hashed_bytes:
            self.notes[SKIPPED_TOO_LARGE] += 1
            return
        # Those up to `after` are found once more, so one chunk may hold a full count of them before the new ones.
        max_hits = 2 * self._view.caps.total_hits + 1
        try:
            for chunk in lines.iter_chunks(self._text_chunks(content), self._context_lines, MAX_LINE_BYTES):
                for hit in search.find_hits(chunk, self._matcher, max_hits):
                    if not after.has_passed(str(real), hit):
                        self._add_hit(real, chunk, hit)
                    if self.is_full and enough:
                        return
        except LineTooLongError:
            self.notes[SKIPPED_LONG_LINE] += 1

    def _add_hit(self, real: RelPath, chunk: LineChunk, hit: SearchHit) -> None:
        self.count += 1
        require_hits_within_cap(self.count, self._view)
        if not self.is_full:
            key = (str(real), hit.line, hit.start, self.count)
            self.is_full = not self.page.add(self._fit_item(self._build_item(real, chunk, hit)), key)

    def _fit_item(self, item: dict[str, Any]) -> dict[str, Any]:
        """The hit; without its context if it is too large for an answer of its own."""
        budget = AnswerBudget.choose(self._view.caps)
        if not self._context_lines or budget.count_bytes(item) <= budget.max_bytes:
            return item
        return {**item, "before": [], "after": []}

    def _text_chunks(self, content: FileContent) -> Iterator[bytes]:
        """The file in chunks; none of a binary file, which has a NUL byte in its first chunk."""
        utf8 = lines.Utf8Check()
        # One byte more than the file has: a short read then shows its end without a second one.
        size = min(content.size + 1, file_reader.CHUNK_BYTES)
        chunk = content.read(size)
        if b"\0" in chunk:
            self.notes[SKIPPED_BINARY] += 1
            return
        while chunk:
            if not chunk.isascii():
                utf8.feed(chunk)
            yield chunk
            file_reader.require_time_left(self._view)
            chunk = content.read(file_reader.CHUNK_BYTES) if len(chunk) == size else b""
            size = file_reader.CHUNK_BYTES
        if not utf8.is_valid:
            self.notes[SHOWN_NOT_UTF8] += 1

    def _build_item(self, real: RelPath, chunk: LineChunk, hit: SearchHit) -> dict[str, Any]:
        data, begin, end = chunk.data, hit.line_start, hit.line_end
        item: dict[str, Any] = {
            "path": escape_name(str(real)),
            "range": {
                "start": {"line": hit.line, "character": hit.start},
                "end": {"line": hit.line, "character": hit.end},
            },
            "line": excerpt(data, begin, end, hit.byte_start),
        }
        if self._context_lines:
            item["before"] = _build_excerpts(data, _lines_before(data, begin, self._context_lines))
            item["after"] = _build_excerpts(data, _lines_after(data, end, self._context_lines))
        return item


def _lines_before(data: bytes, begin: int, count: int) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    while begin and len(spans) < count:
        end = begin - 1
        begin = data.rfind(LF, 0, end) + 1
        spans.insert(0, (begin, end))
    return spans


def _lines_after(data: bytes, end: int, count: int) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    while end + 1 < len(data) and len(spans) < count:
        begin = end + 1
        end = data.find(LF, begin)
        end = len(data) if end < 0 else end
        spans.append((begin, end))
    return spans


def _build_excerpts(data: bytes, spans: list[tuple[int, int]]) -> list[str]:
    return [excerpt(data, begin, end, begin) for begin, end in spans]
