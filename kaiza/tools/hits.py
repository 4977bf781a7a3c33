"""The hits of one search: counted in order, built as far as the page goes, resumed after the one before."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors, lines, matching, paths, stretches
from kaiza.domain.excerpt import excerpt
from kaiza.domain.lines import LF
from kaiza.domain.matching import Finder, Hit
from kaiza.domain.paths import RelPath
from kaiza.domain.room import Page
from kaiza.domain.stretches import Stretch, TooLongError
from kaiza.tools import passage
from kaiza.tools.handles import Content
from kaiza.tools.view import FilesView

LONGEST_LINE = 16 << 20
BINARY = "Left out, binary"
TOO_LARGE = "Left out, too large"
TOO_LONG = "Left out from a line on that is too long"
PROTECTED = "Left out, may not be read"
ODD = "Not UTF-8, odd bytes shown as \ufffd"


@dataclass(frozen=True, slots=True)
class Place:
    """A hit's place in the order of all: path, line, character."""

    path: str
    line: int
    character: int

    def is_after(self, path: str, hit: Hit) -> bool:
        """Whether the hit is this one or comes before it."""
        return path == self.path and (hit.line, hit.start) <= (self.line, self.character)


FIRST = Place("", -1, -1)
"""Before every hit."""


class Hits:
    """What a search has come to so far."""

    def __init__(self, finder: Finder, company: int, page: Page, view: FilesView) -> None:
        self.page = page
        self.full = False
        self.count = 0
        self.notes: Counter[str] = Counter()
        self._finder = finder
        self._company = company
        self._view = view

    def look_into(self, real: RelPath, content: Content, after: Place, *, enough: bool) -> None:
        """Search one file; with `enough`, no further than to the first hit that is not on the page."""
        if content.size > self._view.caps.hashed_bytes:
            self.notes[TOO_LARGE] += 1
            return
        most = 2 * self._view.caps.total_hits + 1
        try:
            for stretch in stretches.stretches(self._chunks(content), self._company, LONGEST_LINE):
                for hit in matching.hits(stretch, self._finder, most):
                    if not after.is_after(str(real), hit):
                        self._take(real, stretch, hit)
                    if self.full and enough:
                        return
        except TooLongError:
            self.notes[TOO_LONG] += 1

    def _take(self, real: RelPath, stretch: Stretch, hit: Hit) -> None:
        self.count += 1
        in_all(self.count, self._view)
        if not self.full:
            key = (str(real), hit.line, hit.start, self.count)
            self.full = not self.page.add(self._item(real, stretch, hit), key)

    def _chunks(self, content: Content) -> Iterator[bytes]:
        """The file's bytes; none where the first of them say that it is no text."""
        text = lines.Text()
        size = min(content.size + 1, passage.CHUNK)
        chunk = content.read(size)
        if b"\0" in chunk:
            self.notes[BINARY] += 1
            return
        while chunk:
            if not chunk.isascii():
                text.feed(chunk)
            yield chunk
            passage.in_time(self._view)
            chunk = content.read(passage.CHUNK) if len(chunk) == size else b""
            size = passage.CHUNK
        if not text.sound:
            self.notes[ODD] += 1

    def _item(self, real: RelPath, stretch: Stretch, hit: Hit) -> dict[str, Any]:
        data, begin, end = stretch.data, hit.line_begins, hit.line_ends
        item: dict[str, Any] = {
            "path": lines.shown(str(real)),
            "uri": paths.to_uri(self._view.root, real),
            "range": {
                "start": {"line": hit.line, "character": hit.start},
                "end": {"line": hit.line, "character": hit.end},
            },
            "line": excerpt(data, begin, end, hit.begins),
        }
        if self._company:
            item["before"] = _shown(data, _before(data, begin, self._company))
            item["after"] = _shown(data, _after(data, end, self._company))
        return item


def in_all(count: int, view: FilesView) -> None:
    """CAP_EXCEEDED where a scan finds more than anybody will page through."""
    if count > view.caps.total_hits:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="There are too many hits. Narrow the search down.",
            cause={"cap": "total_set", "limit": view.caps.total_hits},
        )


def _before(data: bytes, begin: int, most: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while begin and len(found) < most:
        end = begin - 1
        begin = data.rfind(LF, 0, end) + 1
        found.insert(0, (begin, end))
    return found


def _after(data: bytes, end: int, most: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while end + 1 < len(data) and len(found) < most:
        begin = end + 1
        end = data.find(LF, begin)
        end = len(data) if end < 0 else end
        found.append((begin, end))
    return found


def _shown(data: bytes, spans: list[tuple[int, int]]) -> list[str]:
    return [excerpt(data, begin, end, begin) for begin, end in spans]
