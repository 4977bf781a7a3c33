"""Tool `project_assets_summary`: how many files of which type there are, their sizes, and the largest of them."""

import heapq
from collections.abc import Callable

from kaiza.domain.paging.response_size import AnswerBudget, PageBuilder
from kaiza.domain.paths.shown_names import escape_name
from kaiza.tools.project.workspace_walk import visit_workspace
from kaiza.tools.view import Answer, WalkEntry, WorkspaceView

MAX_TYPES = 1_000
MAX_LARGE = 20
_MAX_TYPE_CHARACTERS = 32
_NO_TYPE = "none"


def run(_request: object, view: WorkspaceView) -> Answer:
    """Count the files of the workspace by type."""
    by_type: dict[str, list[int]] = {}
    largest: list[tuple[int, str]] = []

    def add_entry(entry: WalkEntry, _is_over: Callable[[], bool]) -> None:
        metadata = entry.stat_entry() if entry.type == "file" else None
        if metadata is None or metadata.size is None:
            return
        # The type is the name's ending; a name like `Makefile` or `.profile` has none.
        stem, _, ending = entry.path.rpartition("/")[2].rpartition(".")
        type_name = escape_name(ending.lower()[:_MAX_TYPE_CHARACTERS]) if stem and ending else _NO_TYPE
        totals = by_type.setdefault(type_name, [0, 0])
        totals[0] += 1
        totals[1] += metadata.size
        largest.append((-metadata.size, entry.path))
        if len(largest) >= 2 * MAX_LARGE:
            largest[:] = heapq.nsmallest(MAX_LARGE, largest)

    stopped, notes = visit_workspace(view, view.caps.assets_guard_ms, add_entry)
    count, size = (sum(totals[index] for totals in by_type.values()) for index in (0, 1))
    # Of files of one size, the first by path.
    large = [{"path": escape_name(path), "bytes": -negated} for negated, path in heapq.nsmallest(MAX_LARGE, largest)]
    output = {"totalAssets": count, "totalBytes": size, "largeAssets": large}
    page = PageBuilder(MAX_TYPES, AnswerBudget.choose(view.caps), output)
    rows = ({"type": name, "count": by_type[name][0], "bytes": by_type[name][1]} for name in sorted(by_type))
    shown = sum(map(page.add, rows))
    cut = [f"Showing {shown} of {len(by_type)} types."] if shown < len(by_type) else []
    summary = f"{count} files of {len(by_type)} types, {size} bytes{', or more' if stopped else ''}."
    return Answer({**output, "byType": page.items, "summary": summary}, diagnostics=[*stopped, *cut, *notes])
