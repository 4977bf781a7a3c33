"""List a directory in pages, sorted by name; only what is on the page is looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.domain.paging import cursor
from kaiza.domain.paging.response_size import PageBuilder
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.text import lines
from kaiza.tools.handles import ListableDirectory
from kaiza.tools.view import Answer, FilesView

NAME = "list_directory"


@dataclass(frozen=True, slots=True)
class Request:
    """Which directory, and after which name."""

    path: RelPath
    after: str
    page_size: int | None

    @property
    def cursor_binding(self) -> dict[str, object]:
        """What a cursor of this request belongs to."""
        return {"path": str(self.path)}


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Take the arguments; a cursor says after which name to go on."""
    request = Request(rel_path.parse(arguments["path"], root), "", arguments.get("pageSize"))
    if "cursor" not in arguments:
        return request
    (after,) = cursor.decode(arguments["cursor"], NAME, request.cursor_binding, (str,))
    return Request(request.path, str(after), request.page_size)


def run(request: Request, view: FilesView) -> Answer:
    """Give the next names in order."""
    most = request.page_size or view.caps.page_items
    with view.open_directory(request.path) as directory:
        path = lines.escape_bytes(str(directory.real))
        page = PageBuilder(most, view.caps.response_bytes, {"path": path})
        names = directory.names(request.after, most + 1)
        done = _fill_page(page, directory, names, f"{path}/" if directory.real.parts else "")
    output: dict[str, Any] = {"path": path, "items": page.items}
    if done < len(names) or len(names) > most:
        output["nextCursor"] = cursor.encode(NAME, request.cursor_binding, (names[done - 1],))
    return Answer({**output, "summary": _build_summary(output)})


def _fill_page(page: PageBuilder, directory: ListableDirectory, names: Sequence[str], prefix: str) -> int:
    """How many of the names are done with when the page is full; what is gone by now is."""
    for at, name in enumerate(names):
        item = _build_item(directory, name, prefix)
        if item and not page.add(item, (name,)):
            return at
    return len(names)


def _build_item(directory: ListableDirectory, name: str, prefix: str) -> dict[str, Any] | None:
    entry = directory.stat_entry(name)
    if entry is None:
        return None
    told = lines.escape_bytes(name)
    item = {"name": told, "path": prefix + told, "type": entry.type, "modified": entry.modified}
    return item if entry.size is None else {**item, "size": entry.size}


def _build_summary(output: Mapping[str, Any]) -> str:
    return f"{len(output['items'])} entries{', more follow' if 'nextCursor' in output else ''}."
