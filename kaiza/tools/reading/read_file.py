"""Tool `read_file`: read a window of lines of a file, with the hash of the whole file unless it is large."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain.paging.response_size import AnswerBudget
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.paths.shown_names import escape_name
from kaiza.domain.text import lines
from kaiza.domain.text.lines import RANGE_DASH, LineWindow
from kaiza.tools.reading import file_reader
from kaiza.tools.view import Answer, WorkspaceView

_CLOSING_MEMBERS = {
    "encoding": "base64",
    "content": "",
    "line_count": 2**53,
    "truncated": True,
    "next": {"start_line": 2**53, "byte_offset": 2**53},
}
"""The members that follow the description of the file, at their largest but for the content."""


@dataclass(frozen=True, slots=True)
class Request:
    """The path, and the window of lines."""

    path: RelPath
    start_line: int = 0
    max_lines: int | None = None
    byte_offset: int = 0
    with_hash: bool = False


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Parse the path; the schema has checked the rest."""
    return Request(
        rel_path.parse(arguments["path"], root),
        arguments.get("start_line", 0),
        arguments.get("max_lines"),
        arguments.get("byte_offset", 0),
        arguments.get("with_hash", False),
    )


def run(request: Request, view: WorkspaceView) -> Answer:
    """Return the window, cut to the size of an answer."""
    output = read_window(request, view, AnswerBudget.choose(view.caps, is_asked=request.max_lines is not None))
    return Answer({**output, "summary": _build_summary(output)})


def read_window(request: Request, view: WorkspaceView, budget: AnswerBudget) -> dict[str, Any]:
    """Return the output for one file, within the budget."""
    window = LineWindow(
        request.start_line,
        request.byte_offset,
        most_lines=request.max_lines or view.caps.default_read_lines,
        # Every byte takes at least so many in the answer: more need not be read.
        most_bytes=max(budget.max_bytes, 0) // budget.min_byte_cost,
    )
    with view.open_file(request.path) as file:
        summary = file_reader.summarize_file(file, view, window, with_hash=request.with_hash)
        size = summary.size if summary else file.size
        output: dict[str, Any] = {
            "path": escape_name(str(file.real)),
            "uri": rel_path.to_uri(view.root, file.real),
            "size": size,
            "start_line": window.start_line,
        }
    if summary is not None:
        output["hash"] = summary.hex_digest
        output["total_lines"], output["line_ending"] = summary.total_lines, summary.line_ending
    space = budget.max_bytes - budget.count_bytes({**output, **_CLOSING_MEMBERS})
    part = lines.fit_content(bytes(window.data), space, budget, final=window.offset + len(window.data) >= size)
    is_cut = window.offset + part.size < size
    output |= {
        "encoding": part.encoding,
        "content": part.content,
        "line_count": part.line_count,
        "truncated": is_cut,
    }
    if is_cut and bytes(window.data[: part.size]).endswith(lines.LF):
        output["next"] = {"start_line": window.start_line + part.line_count}
    elif is_cut:
        # A byte offset may reach beyond the line at which it begins.
        output["next"] = {"start_line": request.start_line, "byte_offset": request.byte_offset + part.size}
    return output


def _build_summary(output: Mapping[str, Any]) -> str:
    """Say which lines were read, and how to read the rest."""
    first, count = output["start_line"], output["line_count"]
    total = f" of {output['total_lines']:,}" if "total_lines" in output else ""
    if not count:
        return f"No lines at or after line {first}{total}, counted from 0."
    following, hint = output.get("next", {}), ""
    if "byte_offset" in following:
        place = f"start_line {following['start_line']} and byte_offset {following['byte_offset']}"
        hint = f" The last line is cut: call again with {place} to read on."
    elif following:
        hint = f" Call again with start_line {following['start_line']} to read on."
    no_hash = "" if "hash" in output else file_reader.NO_HASH
    return f"Lines {first}{RANGE_DASH}{first + count - 1}{total}, counted from 0.{hint}{no_hash}"
