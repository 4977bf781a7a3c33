"""Tool `find_files`: find files and directories by a glob, in pages, in the order of paths."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kaiza.domain.paging import cursor
from kaiza.domain.paging.response_size import AnswerBudget, PageBuilder
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.paths.shown_names import escape_name
from kaiza.tools.reading.tree_scan import GlobFilter, ScanTimeout, iterate_with_progress, require_hits_within_cap
from kaiza.tools.view import Answer, Walk, WorkspaceView

NAME = "find_files"


@dataclass(frozen=True, slots=True)
class Request:
    """The glob, where to search, and the path to continue after. On the first page all hits are counted."""

    pattern: GlobFilter
    path: RelPath
    include_ignored: bool
    page_size: int | None
    cursor_binding: Mapping[str, object]
    """Arguments that a cursor is bound to: it is not valid for another request."""
    after: str = ""
    hits: int = 0
    paged: bool = False


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Parse the glob, the path and the cursor, which holds the path to continue after."""
    pattern = GlobFilter.parse(arguments["pattern"], "pattern")
    path = rel_path.parse(arguments.get("path", "."), root)
    include_ignored = arguments.get("include_ignored", False)
    binding = {"pattern": pattern.glob.text, "path": str(path), "include_ignored": include_ignored}
    request = Request(pattern, path, include_ignored, arguments.get("pageSize"), binding, paged="pageSize" in arguments)
    if "cursor" not in arguments:
        return request
    after, hits = cursor.decode(arguments["cursor"], NAME, binding, (str, int))
    return replace(request, after=str(after), hits=int(hits), paged=True)


def run(request: Request, view: WorkspaceView) -> Answer:
    """Return the next matching paths."""
    timeout = ScanTimeout(view, None if request.paged else view.caps.find_guard_ms)
    with view.open_directory(request.path) as directory:
        start = directory.real
    base = f"{start}/" if start.parts else ""
    # The walk is in the order of paths: it starts where the glob's literal prefix, or the previous page, says.
    since = max(request.after, base + request.pattern.glob.prefix)
    with view.walk(start, include_ignored=request.include_ignored, over=timeout.has_expired, since=since) as walk:
        has_counted = partial(timeout.may_stop_counting, view.caps.find_guard_ms, is_continued=bool(request.after))
        output = _collect_page(request, view, walk, len(base), has_counted)
        notes = timeout.diagnostics(walk, start)
    if not output["items"] and "/" not in request.pattern.glob.text:
        notes.append("A pattern without a slash matches in one directory only; begin it with **/ for any depth.")
    if notes:
        output["diagnostics"] = notes
    summary = f"{len(output['items'])} found.{cursor.NEXT_PAGE if 'nextCursor' in output else ''}"
    return Answer({**output, "summary": summary}, diagnostics=notes)


def _collect_page(
    request: Request, view: WorkspaceView, walk: Walk, base: int, has_counted: Callable[[], bool]
) -> dict[str, Any]:
    page = PageBuilder(
        request.page_size or view.caps.default_page_items,
        AnswerBudget.choose(view.caps, is_asked=request.page_size is not None),
    )
    hits, full, last = request.hits, False, request.after
    for entry in iterate_with_progress(walk, view):
        path = entry.path[base:]
        if request.pattern.is_past(path):
            break
        last = entry.path
        if entry.path == request.after or not request.pattern.matches(path):
            continue
        hits += 1
        require_hits_within_cap(hits, view)
        if not full:
            metadata = entry.stat_entry() if entry.type == "file" else None
            size = {} if metadata is None or metadata.size is None else {"size": metadata.size}
            item = {"path": escape_name(entry.path), "type": entry.type, **size}
            full = not page.add(item, (entry.path, hits))
        if full and has_counted():
            break  # the first page counts to the end, so that too many hits are refused at once
    output: dict[str, Any] = {"items": page.items}
    if full:
        output["nextCursor"] = cursor.encode(NAME, request.cursor_binding, page.last_key)
    elif walk.stopped_early:
        output["nextCursor"] = cursor.encode(NAME, request.cursor_binding, (last, hits))
    return output
