"""Tool `list_directory`: list a directory in pages, sorted by name. Only entries on the page are stat'ed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.domain.paging import cursor
from kaiza.domain.paging.response_size import AnswerBudget, PageBuilder
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.paths.shown_names import escape_name
from kaiza.tools.handles import ListableDirectory
from kaiza.tools.view import Answer, FilesView

NAME = "list_directory"


@dataclass(frozen=True, slots=True)
class Request:
    """The directory, and the name to continue after."""

    path: RelPath
    after: str
    page_size: int | None

    @property
    def cursor_binding(self) -> dict[str, object]:
        """Arguments that a cursor is bound to: it is not valid for another request."""
        return {"path": str(self.path)}


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Parse the path and the cursor, which holds the name to continue after."""
    request = Request(rel_path.parse(arguments["path"], root), "", arguments.get("pageSize"))
    if "cursor" not in arguments:
        return request
    (after,) = cursor.decode(arguments["cursor"], NAME, request.cursor_binding, (str,))
    return Request(request.path, str(after), request.page_size)


def run(request: Request, view: FilesView) -> Answer:
    """Return the next entries."""
    page_size = request.page_size or view.caps.page_items
    with view.open_directory(request.path) as directory:
        path = str(directory.real)
        page = PageBuilder(
            page_size,
            AnswerBudget.choose(view.caps, is_asked=request.page_size is not None),
            {"path": escape_name(path)},
        )
        names = directory.names(request.after, page_size + 1)  # one more shows whether there is a next page
        done = _fill_page(page, directory, names, f"{path}/" if directory.real.parts else "")
    output: dict[str, Any] = {"path": escape_name(path), "items": page.items}
    if done < len(names) or len(names) > page_size:
        output["nextCursor"] = cursor.encode(NAME, request.cursor_binding, (names[done - 1],))
    return Answer({**output, "summary": _build_summary(output)})


def _fill_page(page: PageBuilder, directory: ListableDirectory, names: Sequence[str], prefix: str) -> int:
    """Fill the page and return how many names were used. A file deleted since its name was read is left out."""
    for number, name in enumerate(names):
        item = _build_item(directory, name, prefix)
        if item and not page.add(item, (name,)):
            return number
    return len(names)


def _build_item(directory: ListableDirectory, name: str, prefix: str) -> dict[str, Any] | None:
    entry = directory.stat_entry(name)
    if entry is None:
        return None
    item = {
        "name": escape_name(name),
        "path": escape_name(prefix + name),
        "type": entry.type,
        "modified": entry.modified,
    }
    return item if entry.size is None else {**item, "size": entry.size}


def _build_summary(output: Mapping[str, Any]) -> str:
    return f"{len(output['items'])} entries.{cursor.NEXT_PAGE if 'nextCursor' in output else ''}"
