"""Tool `search_text`: search the lines of files for a text or a regular expression, in the order of paths."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kaiza.domain.paging import cursor
from kaiza.domain.paging.response_size import AnswerBudget, PageBuilder
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.protected_names import is_in_log_directory
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.paths.shown_names import escape_name
from kaiza.domain.text import lines, search
from kaiza.domain.text.lines import LF, LineChunk, LineTooLongError, excerpt
from kaiza.domain.text.search import Matcher, SearchHit
from kaiza.tools.reading import file_reader
from kaiza.tools.reading.tree_scan import (
    LOG_NOT_SEARCHED,
    GlobFilter,
    ScanTimeout,
    iterate_with_progress,
    require_hits_within_cap,
)
from kaiza.tools.view import Answer, FileContent, Walk, WorkspaceView

NAME = "search_text"
_AFTER_LAST_LINE = 2**53
"""Line number of a cursor that continues after the whole file."""
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


@dataclass(frozen=True, slots=True)
class Request:
    """The query, where to search, and the hit to continue after. On the first page all hits are counted."""

    matcher: Matcher
    path: RelPath
    glob: GlobFilter | None
    include_ignored: bool
    context_lines: int
    page_size: int | None
    paged: bool
    cursor_binding: Mapping[str, object]
    after: HitPosition = BEFORE_FIRST
    count: int = 0

    @property
    def is_continued(self) -> bool:
        """Whether this page follows another one."""
        return self.after != BEFORE_FIRST

    def matches_glob(self, path: str) -> bool:
        """Whether a path is searched."""
        return self.glob is None or self.glob.matches(path)


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Parse the query, the paths and the cursor, which holds the hit to continue after."""
    path = rel_path.parse(arguments.get("path", "."), root)
    regex, ignore_case = arguments.get("regex", False), arguments.get("ignore_case", False)
    request = Request(
        matcher=search.make_matcher(arguments["query"], regex=regex, ignore_case=ignore_case),
        path=path,
        glob=GlobFilter.parse(arguments["glob"], "glob") if "glob" in arguments else None,
        include_ignored=arguments.get("include_ignored", False),
        context_lines=arguments.get("context_lines", 0),
        page_size=arguments.get("pageSize"),
        paged="pageSize" in arguments or "cursor" in arguments,
        cursor_binding={**arguments, "path": str(path)},
    )
    if "cursor" not in arguments:
        return request
    last_path, line, character, count = cursor.decode(
        arguments["cursor"], NAME, request.cursor_binding, (str, int, int, int)
    )
    return replace(request, after=HitPosition(str(last_path), int(line), int(character)), count=int(count))


def run(request: Request, view: WorkspaceView) -> Answer:
    """Return the next hits."""
    hits = HitCollector(request, view)
    done = None
    if view.stat(request.path).type == "directory":
        timeout = ScanTimeout(view, None if request.paged else view.caps.search_guard_ms)
        with view.open_directory(request.path) as directory:
            start = directory.real
        base, since = len(f"{start}/") if start.parts else 0, request.after.path
        with view.walk(start, include_ignored=request.include_ignored, over=timeout.has_expired, since=since) as walk:
            last = hits.search_tree(walk, base, timeout)
            notes = timeout.diagnostics(walk, start)
            done = last if walk.stopped_early else None
    else:
        with view.open_file(request.path) as file:
            notes = [LOG_NOT_SEARCHED] if is_in_log_directory(file.real) else []
            if not notes and request.matches_glob(file.real.name):
                hits.search_file(file.real, file)
    items = hits.page.items
    output: dict[str, Any] = {"items": items}
    if hits.is_full:
        output["nextCursor"] = cursor.encode(NAME, request.cursor_binding, hits.page.last_key)
    elif done is not None:
        output["nextCursor"] = cursor.encode(NAME, request.cursor_binding, (done, _AFTER_LAST_LINE, 0, hits.count))
    notes += [f"{note}: {count} files." for note, count in sorted(hits.notes.items())]
    if notes:
        output["diagnostics"] = notes
    counted = ", lines counted from 0" if items else ""
    more = cursor.NEXT_PAGE if "nextCursor" in output else ""
    summary = f"{len(items)} hits in {len({item['path'] for item in items})} files{counted}.{more}"
    return Answer({**output, "summary": summary}, diagnostics=notes)


class HitCollector:
    """Page, count and notes of a search so far. All hits are counted; only those on the page are built."""

    def __init__(self, request: Request, view: WorkspaceView) -> None:
        budget = AnswerBudget.choose(view.caps, is_asked=request.page_size is not None)
        self.page = PageBuilder(request.page_size or view.caps.default_page_items, budget)
        self.is_full = False
        self.count = request.count
        self.notes: Counter[str] = Counter()
        self._request = request
        self._view = view

    def search_tree(self, walk: Walk, base: int, timeout: ScanTimeout) -> str:
        """Search the files of the walk; return the path of the last entry that is finished."""
        request, view = self._request, self._view
        done = request.after.path
        for entry in iterate_with_progress(walk, view):
            if entry.type == "file" and request.matches_glob(entry.path[base:]):
                opened = None if view.is_unreadable(entry.real) else entry.open()
                if opened is None:
                    self.notes[SKIPPED_PROTECTED] += 1
                else:
                    with opened as content:
                        self.search_file(entry.real, content)
                if self.is_full and timeout.may_stop_counting(
                    view.caps.search_guard_ms, is_continued=request.is_continued
                ):
                    break
            done = entry.path
        return done

    def search_file(self, real: RelPath, content: FileContent) -> None:
        """Search one file; on a page that follows another, only until the page is full."""
        request = self._request
        if content.size > self._view.caps.hashed_bytes:
            self.notes[SKIPPED_TOO_LARGE] += 1
            return
        # Those up to `after` are found once more, so one chunk may hold a full count of them before the new ones.
        max_hits = 2 * self._view.caps.total_hits + 1
        try:
            for chunk in lines.iter_chunks(self._text_chunks(content), request.context_lines, MAX_LINE_BYTES):
                for hit in search.find_hits(chunk, request.matcher, max_hits):
                    if not request.after.has_passed(str(real), hit):
                        self.count += 1
                        require_hits_within_cap(self.count, self._view)
                        if not self.is_full:
                            key = (str(real), hit.line, hit.start, self.count)
                            self.is_full = not self.page.add(self._build_item(real, chunk, hit), key)
                    if self.is_full and request.is_continued:
                        return
        except LineTooLongError:
            self.notes[SKIPPED_LONG_LINE] += 1

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
        count = self._request.context_lines
        if count:
            context = {
                "before": [excerpt(data, *span, span[0]) for span in _lines_before(data, begin, count)],
                "after": [excerpt(data, *span, span[0]) for span in _lines_after(data, end, count)],
            }
            budget = AnswerBudget.choose(self._view.caps)
            # A hit that is too large for an answer of its own loses its context.
            fits = budget.count_bytes({**item, **context}) <= budget.max_bytes
            item |= context if fits else {"before": [], "after": []}
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
