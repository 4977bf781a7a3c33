"""Search the lines of files for a text or an expression, in the order of paths."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kaiza.domain import cursor, matching, paths
from kaiza.domain.matching import Finder
from kaiza.domain.paths import RelPath
from kaiza.domain.room import Page
from kaiza.tools import pattern
from kaiza.tools.guard import Guard
from kaiza.tools.handles import Walk
from kaiza.tools.hits import FIRST, PROTECTED, Hits, Place
from kaiza.tools.pattern import Pattern
from kaiza.tools.view import Answer, FilesView

NAME = "search_text"
_WHOLE_FILE = 2**53


@dataclass(frozen=True, slots=True)
class Request:
    """What to search for, where, and after which hit. Without page or cursor everything is counted."""

    finder: Finder
    path: RelPath
    glob: Pattern | None
    include_ignored: bool
    context_lines: int
    page_size: int | None
    paged: bool
    bound: Mapping[str, object]
    after: Place = FIRST
    count: int = 0

    def asks_for(self, path: str) -> bool:
        """Whether the glob, if there is one, covers a path."""
        return self.glob is None or self.glob.fits(path)


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Take the arguments; a cursor says after which hit to go on."""
    path = paths.parse(arguments.get("path", "."), root)
    regex, ignore_case = arguments.get("regex", False), arguments.get("ignore_case", False)
    request = Request(
        finder=matching.finder(arguments["query"], regex=regex, ignore_case=ignore_case),
        path=path,
        glob=pattern.parse(arguments["glob"], "glob") if "glob" in arguments else None,
        include_ignored=arguments.get("include_ignored", False),
        context_lines=arguments.get("context_lines", 0),
        page_size=arguments.get("pageSize"),
        paged="pageSize" in arguments or "cursor" in arguments,
        bound={**arguments, "path": str(path)},
    )
    if "cursor" not in arguments:
        return request
    where, line, character, count = cursor.redeem(arguments["cursor"], NAME, request.bound, (str, int, int, int))
    return replace(request, after=Place(str(where), int(line), int(character)), count=int(count))


def run(request: Request, view: FilesView) -> Answer:
    """Give the next hits; an unpaged request also learns whether there are too many."""
    page = Page(request.page_size or view.caps.page_items, view.caps.response_bytes)
    hits = Hits(request.finder, request.context_lines, page, view)
    hits.count = request.count
    if view.stat(request.path).type == "directory":
        output = _below(request, view, hits)
    else:
        output = _in_file(request, view, hits)
    return Answer({**output, "summary": _summary(output)})


def _in_file(request: Request, view: FilesView, hits: Hits) -> dict[str, Any]:
    with view.open_file(request.path) as file:
        if request.asks_for(file.real.name):
            hits.look_into(file.real, file, request.after, enough=request.paged)
    return _told(request, hits, None, [])


def _below(request: Request, view: FilesView, hits: Hits) -> dict[str, Any]:
    guard = Guard(view, None if request.paged else view.caps.search_guard_ms)
    with view.open_directory(request.path) as directory:
        start = directory.real
    with view.walk(start, include_ignored=request.include_ignored, over=guard.over, since=request.after.path) as walk:
        done = _walked(request, view, hits, walk, len(f"{start}/") if start.parts else 0)
        return _told(request, hits, done if walk.broken_off else None, guard.diagnostics(walk))


def _walked(request: Request, view: FilesView, hits: Hits, walk: Walk, base: int) -> str:
    """Search what the walk meets; the path of the last file that was searched whole."""
    done = request.after.path
    for found in walk:
        if found.type == "file" and request.asks_for(found.path[base:]):
            real = found.real
            if view.unreadable(real):
                hits.notes[PROTECTED] += 1
            elif content := found.open():
                with content:
                    hits.look_into(real, content, request.after, enough=request.paged)
            if hits.full and request.paged:
                break
        done = found.path
    return done


def _told(request: Request, hits: Hits, done: str | None, notes: list[str]) -> dict[str, Any]:
    output: dict[str, Any] = {"items": hits.page.items}
    if hits.full:
        output["nextCursor"] = cursor.issue(NAME, request.bound, hits.page.last)
    elif done is not None:
        output["nextCursor"] = cursor.issue(NAME, request.bound, (done, _WHOLE_FILE, 0, hits.count))
    notes = notes + [f"{what}: {count} files." for what, count in sorted(hits.notes.items())]
    return {**output, "diagnostics": notes} if notes else output


def _summary(output: Mapping[str, Any]) -> str:
    items = output["items"]
    files = len({item["path"] for item in items})
    return f"{len(items)} hits in {files} files{', more follow' if 'nextCursor' in output else ''}."
