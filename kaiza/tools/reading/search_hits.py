"""The hits of one search: counted in order, built as far as the page goes, resumed after the one before."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.paging.response_size import PageBuilder
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.text import lines, search
from kaiza.domain.text.lines import LF, LineChunk, LineTooLongError, excerpt
from kaiza.domain.text.search import Matcher, SearchHit
from kaiza.tools.handles import FileContent
from kaiza.tools.reading import file_reader
from kaiza.tools.view import FilesView

MAX_LINE_BYTES = 16 << 20
SKIPPED_BINARY = "Left out, binary"
SKIPPED_TOO_LARGE = "Left out, too large"
SKIPPED_LONG_LINE = "Left out from a line on that is too long"
SKIPPED_PROTECTED = "Left out, may not be read"
SHOWN_NOT_UTF8 = "Not UTF-8, odd bytes shown as \ufffd"


@dataclass(frozen=True, slots=True)
class HitPosition:
    """A hit's place in the order of all: path, line, character."""

    path: str
    line: int
    character: int

    def has_passed(self, path: str, hit: SearchHit) -> bool:
        """Whether the hit is this one or comes before it."""
        return path == self.path and (hit.line, hit.start) <= (self.line, self.character)


BEFORE_FIRST = HitPosition("", -1, -1)
"""Before every hit."""


class HitCollector:
    """What a search has come to so far."""

    def __init__(self, finder: Matcher, company: int, page: PageBuilder, view: FilesView) -> None:
        self.page = page
        self.is_full = False
        self.count = 0
        self.notes: Counter[str] = Counter()
        self._finder = finder
        self._context_lines = company
        self._view = view

    def search_file(self, real: RelPath, content: FileContent, after: HitPosition, *, enough: bool) -> None:
        """Search one file; with `enough`, no further than to the first hit that is not on the page."""
        if content.size > self._view.caps.hashed_bytes:
            self.notes[SKIPPED_TOO_LARGE] += 1
            return
        most = 2 * self._view.caps.total_hits + 1
        try:
            for stretch in lines.iter_chunks(self._text_chunks(content), self._context_lines, MAX_LINE_BYTES):
                for hit in search.find_hits(stretch, self._finder, most):
                    if not after.has_passed(str(real), hit):
                        self._add_hit(real, stretch, hit)
                    if self.is_full and enough:
                        return
        except LineTooLongError:
            self.notes[SKIPPED_LONG_LINE] += 1

    def _add_hit(self, real: RelPath, stretch: LineChunk, hit: SearchHit) -> None:
        self.count += 1
        require_hits_within_cap(self.count, self._view)
        if not self.is_full:
            key = (str(real), hit.line, hit.start, self.count)
            self.is_full = not self.page.add(self._build_item(real, stretch, hit), key)

    def _text_chunks(self, content: FileContent) -> Iterator[bytes]:
        """The file's bytes; none where the first of them say that it is no text."""
        text = lines.Utf8Check()
        size = min(content.size + 1, file_reader.CHUNK_BYTES)
        chunk = content.read(size)
        if b"\0" in chunk:
            self.notes[SKIPPED_BINARY] += 1
            return
        while chunk:
            if not chunk.isascii():
                text.feed(chunk)
            yield chunk
            file_reader.require_time_left(self._view)
            chunk = content.read(file_reader.CHUNK_BYTES) if len(chunk) == size else b""
            size = file_reader.CHUNK_BYTES
        if not text.is_valid:
            self.notes[SHOWN_NOT_UTF8] += 1

    def _build_item(self, real: RelPath, stretch: LineChunk, hit: SearchHit) -> dict[str, Any]:
        data, begin, end = stretch.data, hit.line_start, hit.line_end
        item: dict[str, Any] = {
            "path": lines.escape_bytes(str(real)),
            "uri": rel_path.to_uri(self._view.root, real),
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


def require_hits_within_cap(count: int, view: FilesView) -> None:
    """CAP_EXCEEDED where a scan finds more than anybody will page through."""
    if count > view.caps.total_hits:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="There are too many hits. Narrow the search down.",
            cause={"cap": "total_set", "limit": view.caps.total_hits},
        )


def _lines_before(data: bytes, begin: int, most: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while begin and len(found) < most:
        end = begin - 1
        begin = data.rfind(LF, 0, end) + 1
        found.insert(0, (begin, end))
    return found


def _lines_after(data: bytes, end: int, most: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while end + 1 < len(data) and len(found) < most:
        begin = end + 1
        end = data.find(LF, begin)
        end = len(data) if end < 0 else end
        found.append((begin, end))
    return found


def _build_excerpts(data: bytes, spans: list[tuple[int, int]]) -> list[str]:
    return [excerpt(data, begin, end, begin) for begin, end in spans]
