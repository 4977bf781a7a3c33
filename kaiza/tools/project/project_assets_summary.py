"""Tool `project_assets_summary`: how many files of which type there are, their sizes, and the largest of them."""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain.paging.response_size import AnswerBudget, PageBuilder
from kaiza.domain.paths.shown_names import escape_name
from kaiza.tools.handles import WalkEntry
from kaiza.tools.project.workspace_walk import visit_workspace
from kaiza.tools.view import Answer, FilesView

NAME = "project_assets_summary"
MAX_TYPES = 1_000
MAX_LARGE = 20
_MAX_TYPE_CHARACTERS = 32
_NO_TYPE = "none"


@dataclass(frozen=True, slots=True)
class Request:
    """A request without arguments."""


class AssetCounter:
    """Counts and sizes by type, and the largest files so far."""

    def __init__(self) -> None:
        self.by_type: dict[str, list[int]] = {}
        self._largest: list[tuple[int, str]] = []

    def add_entry(self, entry: WalkEntry, _is_over: Callable[[], bool]) -> None:
        """Count a regular file."""
        metadata = entry.stat_entry() if entry.type == "file" else None
        if metadata is None or metadata.size is None:
            return
        totals = self.by_type.setdefault(_type_of(entry.path), [0, 0])
        totals[0] += 1
        totals[1] += metadata.size
        self._largest.append((-metadata.size, entry.path))
        if len(self._largest) >= 2 * MAX_LARGE:
            self._largest = heapq.nsmallest(MAX_LARGE, self._largest)

    def list_largest(self) -> list[dict[str, Any]]:
        """The largest files; of equal ones the first by path."""
        largest = heapq.nsmallest(MAX_LARGE, self._largest)
        return [{"path": escape_name(path), "bytes": -size} for size, path in largest]


def parse(_arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Return the request; the tool has no arguments of its own."""
    return Request()


def run(_request: Request, view: FilesView) -> Answer:
    """Count the files of the workspace by type."""
    counter = AssetCounter()
    stopped, notes = visit_workspace(view, view.caps.assets_guard_ms, counter.add_entry)
    count, size = (sum(totals[index] for totals in counter.by_type.values()) for index in (0, 1))
    output = {"totalAssets": count, "totalBytes": size, "largeAssets": counter.list_largest()}
    page = PageBuilder(MAX_TYPES, AnswerBudget.choose(view.caps), output)
    types = sorted(counter.by_type)
    shown = sum(page.add(_build_type(name, *counter.by_type[name])) for name in types)
    cut = [f"Showing {shown} of {len(types)} types."] if shown < len(types) else []
    summary = f"{count} files of {len(types)} types, {size} bytes{', or more' if stopped else ''}."
    return Answer({**output, "byType": page.items, "summary": summary}, diagnostics=[*stopped, *cut, *notes])


def _type_of(path: str) -> str:
    """The ending of a file's name in lower case; none for a name like `Makefile` or `.profile`."""
    stem, dot, ending = path.rpartition("/")[2].rpartition(".")
    return escape_name(ending.lower()[:_MAX_TYPE_CHARACTERS]) if stem and dot and ending else _NO_TYPE


def _build_type(name: str, count: int, size: int) -> dict[str, Any]:
    return {"type": name, "count": count, "bytes": size}
