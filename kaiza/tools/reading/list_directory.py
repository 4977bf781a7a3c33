"""Tool `list_directory`: list a directory in pages, sorted by name. Only entries on the page are stat'ed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain.paging import cursor
from kaiza.domain.paging.response_size import AnswerBudget, PageBuilder
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.paths.shown_names import escape_name
from kaiza.tools.view import Answer, WorkspaceView

NAME = "list_directory"


@dataclass(frozen=True, slots=True)
class Request:
    """The directory, and the name to continue after."""

    path: RelPath
    after: str
    page_size: int | None
    cursor_binding: Mapping[str, object]
    """Arguments that a cursor is bound to: it is not valid for another request."""


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Parse the path and the cursor, which holds the name to continue after."""
    path, after = rel_path.parse(arguments["path"], root), ""
    binding = {"path": str(path)}
    if "cursor" in arguments:
        after = str(*cursor.decode(arguments["cursor"], NAME, binding, (str,)))
    return Request(path, after, arguments.get("pageSize"), binding)


def run(request: Request, view: WorkspaceView) -> Answer:
    """Return the next entries."""
    page_size = request.page_size or view.caps.page_items
    budget = AnswerBudget.choose(view.caps, is_asked=request.page_size is not None)
    with view.open_directory(request.path) as directory:
        path = str(directory.real)
        prefix = f"{path}/" if directory.real.parts else ""
        page = PageBuilder(page_size, budget, {"path": escape_name(path)})
        names = directory.names(request.after, page_size + 1)  # one more shows whether there is a next page
        done = 0
        for name in names:
            entry = directory.stat_entry(name)
            if entry is not None:  # else it was deleted since its name was read
                # Escaped as a whole: an odd byte in the directory's name doubles the backslashes in this one.
                names_shown = {"name": escape_name(name), "path": escape_name(prefix + name)}
                size = {} if entry.size is None else {"size": entry.size}
                item = {**names_shown, "type": entry.type, "modified": entry.modified, **size}
                if not page.add(item, (name,)):
                    break
            done += 1
    output: dict[str, Any] = {"path": escape_name(path), "items": page.items}
    if done < len(names) or len(names) > page_size:
        output["nextCursor"] = cursor.encode(NAME, request.cursor_binding, (names[done - 1],))
    summary = f"{len(page.items)} entries.{cursor.NEXT_PAGE if 'nextCursor' in output else ''}"
    return Answer({**output, "summary": summary})
