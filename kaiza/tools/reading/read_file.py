"""Tool `read_file`: read a window of lines of a file, with the hash of the whole file."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain.paging import response_size
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.text import lines
from kaiza.domain.text.lines import LineWindow
from kaiza.tools.reading import file_reader
from kaiza.tools.view import Answer, FilesView

NAME = "read_file"

_FRAME_BYTES = 1024
"""Bytes reserved for the summary and the members that follow the content."""


@dataclass(frozen=True, slots=True)
class Request:
    """The path, and the window of lines."""

    path: RelPath
    start_line: int = 0
    max_lines: int | None = None
    byte_offset: int = 0


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Parse the path; the schema has checked the rest."""
    return Request(
        rel_path.parse(arguments["path"], root),
        arguments.get("start_line", 0),
        arguments.get("max_lines"),
        arguments.get("byte_offset", 0),
    )


def run(request: Request, view: FilesView) -> Answer:
    """Return the window, cut to the size of a response."""
    output = read_window(request, view, view.caps.response_bytes - response_size.RESERVED_BYTES)
    return Answer({**output, "summary": _build_summary(output)})


def read_window(request: Request, view: FilesView, space: int) -> dict[str, Any]:
    """Return the output for one file, no larger than `space` bytes."""
    # Every byte takes at least MIN_BYTE_COST in the response, as content and as JSON text: more need not be read.
    window = LineWindow(
        request.start_line,
        request.byte_offset,
        most_lines=request.max_lines or view.caps.read_lines,
        most_bytes=max(space, 0) // response_size.MIN_BYTE_COST,
    )
    with view.open_file(request.path) as file:
        summary = file_reader.summarize_file(file, view, window)
        size = summary.size if summary else file.size
        output: dict[str, Any] = {
            "path": lines.escape_bytes(str(file.real)),
            "uri": rel_path.to_uri(view.root, file.real),
            "size": size,
            "start_line": window.start_line,
            **file_reader.summary_fields(summary),
        }
    left = space - response_size.response_bytes(output) - _FRAME_BYTES
    part = lines.fit_content(bytes(window.data), left, final=window.offset + len(window.data) >= size)
    return {
        **output,
        "encoding": part.encoding,
        "content": part.content,
        "line_count": part.line_count,
        "truncated": window.offset + part.size < size,
    }


def _build_summary(output: Mapping[str, Any]) -> str:
    """Say which lines were read, and how to read the rest."""
    first, count = output["start_line"], output["line_count"]
    total = f" of {output['total_lines']}" if "total_lines" in output else ""
    if not count:
        return f"No lines at or after line {first}{total}."
    return f"Lines {first} to {first + count - 1}{total}.{_continuation_hint(output)}"


def _continuation_hint(output: Mapping[str, Any]) -> str:
    if not output["truncated"]:
        return ""
    content = output["content"]
    raw = base64.b64decode(content) if output["encoding"] == "base64" else content.encode()
    if raw.endswith(lines.LF):
        return f" Call again with start_line {output['start_line'] + output['line_count']} to read the rest."
    return f" The last line is cut: call again with {len(raw)} added to byte_offset to read the rest."
