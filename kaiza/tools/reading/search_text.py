"""Tool `search_text`: search the lines of files for a text or a regular expression, in the order of paths."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kaiza.domain.paging import cursor
from kaiza.domain.paging.response_size import AnswerBudget, PageBuilder
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.text import search
from kaiza.domain.text.search import Matcher
from kaiza.tools.handles import Walk
from kaiza.tools.reading.scan import GlobFilter, ScanTimeout, describe_log_directory, iterate_with_progress, parse_glob
from kaiza.tools.reading.search_hits import BEFORE_FIRST, SKIPPED_PROTECTED, HitCollector, HitPosition
from kaiza.tools.view import Answer, FilesView

NAME = "search_text"
_AFTER_LAST_LINE = 2**53
"""Line number of a cursor that continues after the whole file."""


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
        glob=parse_glob(arguments["glob"], "glob") if "glob" in arguments else None,
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


def run(request: Request, view: FilesView) -> Answer:
    """Return the next hits."""
    page = PageBuilder(
        request.page_size or view.caps.default_page_items,
        AnswerBudget.choose(view.caps, is_asked=request.page_size is not None),
    )
    hits = HitCollector(request.matcher, request.context_lines, page, view)
    hits.count = request.count
    if view.stat(request.path).type == "directory":
        output = _search_directory(request, view, hits)
    else:
        output = _search_file(request, view, hits)
    return Answer({**output, "summary": _build_summary(output)}, diagnostics=output.get("diagnostics", ()))


def _search_file(request: Request, view: FilesView, hits: HitCollector) -> dict[str, Any]:
    with view.open_file(request.path) as file:
        notes = describe_log_directory(file.real)
        if not notes and request.matches_glob(file.real.name):
            hits.search_file(file.real, file, request.after, enough=request.is_continued)
    return _page_output(request, hits, None, notes)


def _search_directory(request: Request, view: FilesView, hits: HitCollector) -> dict[str, Any]:
    timeout = ScanTimeout(view, None if request.paged else view.caps.search_guard_ms)
    with view.open_directory(request.path) as directory:
        start = directory.real
    with view.walk(
        start, include_ignored=request.include_ignored, over=timeout.has_expired, since=request.after.path
    ) as walk:
        has_counted = partial(timeout.may_stop_counting, view.caps.search_guard_ms, is_continued=request.is_continued)
        done = _search_tree(request, view, hits, walk, len(f"{start}/") if start.parts else 0, has_counted)
        notes = [*describe_log_directory(start), *timeout.diagnostics(walk)]
        return _page_output(request, hits, done if walk.stopped_early else None, notes)


def _search_tree(
    request: Request, view: FilesView, hits: HitCollector, walk: Walk, base: int, has_counted: Callable[[], bool]
) -> str:
    """Search the files of the walk; return the path of the last entry that is finished."""
    done = request.after.path
    for entry in iterate_with_progress(walk, view):
        if entry.type == "file" and request.matches_glob(entry.path[base:]):
            real = entry.real
            content = None if view.is_unreadable(real) else entry.open()
            if content is None:
                hits.notes[SKIPPED_PROTECTED] += 1
            else:
                with content:
                    hits.search_file(real, content, request.after, enough=request.is_continued)
            if hits.is_full and has_counted():
                break
        done = entry.path
    return done


def _page_output(request: Request, hits: HitCollector, done: str | None, notes: list[str]) -> dict[str, Any]:
    output: dict[str, Any] = {"items": hits.page.items}
    if hits.is_full:
        output["nextCursor"] = cursor.encode(NAME, request.cursor_binding, hits.page.last_key)
    elif done is not None:
        output["nextCursor"] = cursor.encode(NAME, request.cursor_binding, (done, _AFTER_LAST_LINE, 0, hits.count))
    notes = notes + [f"{note}: {count} files." for note, count in sorted(hits.notes.items())]
    return {**output, "diagnostics": notes} if notes else output


def _build_summary(output: Mapping[str, Any]) -> str:
    items = output["items"]
    files = len({item["path"] for item in items})
    counted = ", lines counted from 0" if items else ""
    return f"{len(items)} hits in {files} files{counted}.{cursor.NEXT_PAGE if 'nextCursor' in output else ''}"
