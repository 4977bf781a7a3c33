"""Find files and directories by a glob on their path, in the order of paths."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kaiza.domain import cursor, lines, paths
from kaiza.domain.paths import RelPath
from kaiza.domain.room import Page
from kaiza.tools import pattern
from kaiza.tools.guard import Guard
from kaiza.tools.handles import Found, Walk
from kaiza.tools.hits import in_all
from kaiza.tools.pattern import Pattern
from kaiza.tools.view import Answer, FilesView

NAME = "find_files"


@dataclass(frozen=True, slots=True)
class Request:
    """What to find, where, and after which path. Without page or cursor everything is counted."""

    pattern: Pattern
    path: RelPath
    include_ignored: bool
    page_size: int | None
    after: str = ""
    hits: int = 0
    paged: bool = False

    @property
    def bound(self) -> dict[str, object]:
        """What a cursor of this request belongs to."""
        return {
            "pattern": self.pattern.glob.text,
            "path": str(self.path),
            "include_ignored": self.include_ignored,
        }


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Take the arguments; a cursor says after which path to go on."""
    request = Request(
        pattern=pattern.parse(arguments["pattern"], "pattern"),
        path=paths.parse(arguments.get("path", "."), root),
        include_ignored=arguments.get("include_ignored", False),
        page_size=arguments.get("pageSize"),
        paged="pageSize" in arguments,
    )
    if "cursor" not in arguments:
        return request
    after, hits = cursor.redeem(arguments["cursor"], NAME, request.bound, (str, int))
    return replace(request, after=str(after), hits=int(hits), paged=True)


def run(request: Request, view: FilesView) -> Answer:
    """Give the next paths that match; an unpaged request also learns whether there are too many."""
    guard = Guard(view, None if request.paged else view.caps.find_guard_ms)
    with view.open_directory(request.path) as directory:
        start = directory.real
    base = f"{start}/" if start.parts else ""
    since = max(request.after, base + request.pattern.glob.prefix)
    with view.walk(start, include_ignored=request.include_ignored, over=guard.over, since=since) as walk:
        output = _collected(request, view, walk, len(base))
        notes = guard.diagnostics(walk)
    if not output["items"] and "/" not in request.pattern.glob.text:
        notes.append("A pattern without a slash matches in one directory only; begin it with **/ for any depth.")
    if notes:
        output["diagnostics"] = notes
    return Answer({**output, "summary": _summary(output)})


def _collected(request: Request, view: FilesView, walk: Walk, base: int) -> dict[str, Any]:
    page = Page(request.page_size or view.caps.page_items, view.caps.response_bytes)
    hits, full, last = request.hits, False, request.after
    for found in walk:
        path = found.path[base:]
        if request.pattern.is_past(path):
            break
        last = found.path
        if found.path == request.after or not request.pattern.fits(path):
            continue
        hits += 1
        in_all(hits, view)
        full = full or not page.add(_item(found), (found.path, hits))
        if full and request.paged:
            break
    output: dict[str, Any] = {"items": page.items}
    if full:
        output["nextCursor"] = cursor.issue(NAME, request.bound, page.last)
    elif walk.broken_off:
        output["nextCursor"] = cursor.issue(NAME, request.bound, (last, hits))
    return output


def _item(found: Found) -> dict[str, Any]:
    item: dict[str, Any] = {"path": lines.shown(found.path), "type": found.type}
    entry = found.entry() if found.type == "file" else None
    return item if entry is None or entry.size is None else {**item, "size": entry.size}


def _summary(output: Mapping[str, Any]) -> str:
    return f"{len(output['items'])} found{', more follow' if 'nextCursor' in output else ''}."
