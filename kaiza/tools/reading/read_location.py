"""Tool `read_location`: read the line at an LSP position, and the lines around it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.paging.response_size import AnswerBudget
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.paths.shown_names import escape_name
from kaiza.domain.text.lines import LF, RANGE_DASH, LineWindow, excerpt
from kaiza.tools.reading import file_reader
from kaiza.tools.view import Answer, FilesView

NAME = "read_location"
MAX_WINDOW_BYTES = 16 << 20
"""Bytes of a file that are held at most to find a character in a long line."""


@dataclass(frozen=True, slots=True)
class Request:
    """The file, the position in it, and the number of lines around it."""

    path: RelPath
    line: int
    character: int
    context_lines: int

    @property
    def first_line(self) -> int:
        """The first line to show."""
        return max(0, self.line - self.context_lines)


def parse(arguments: Mapping[str, Any], root: str) -> Request:
    """Parse the URI; the schema has checked the rest."""
    position = arguments["position"]
    return Request(
        rel_path.parse_uri(arguments["uri"], root),
        position["line"],
        position["character"],
        arguments.get("context_lines", 0),
    )


def run(request: Request, view: FilesView) -> Answer:
    """Return the lines; INVALID_INPUT_VALUE if the file has no such position."""
    most_lines = request.line + request.context_lines + 1 - request.first_line
    window = LineWindow(request.first_line, 0, most_lines=most_lines, most_bytes=MAX_WINDOW_BYTES)
    with view.open_file(request.path) as file:
        summary = file_reader.summarize_file(file, view, window)
        real = file.real
    output: dict[str, Any] = {
        "uri": rel_path.to_uri(view.root, real),
        "path": escape_name(str(real)),
        "position": {"line": request.line, "character": request.character},
        "lines": _excerpt_lines(request, bytes(window.data)),
    }
    if summary is not None:
        output["hash"] = summary.hex_digest
    output["lines"] = _fit_lines(output, request.line, AnswerBudget.choose(view.caps))
    return Answer({**output, "summary": _build_summary(output)})


def _fit_lines(output: Mapping[str, Any], line: int, budget: AnswerBudget) -> list[dict[str, Any]]:
    """The lines of the output; only the one at the position if they are too large for an answer."""
    shown: list[dict[str, Any]] = output["lines"]
    fits = budget.count_bytes(output) <= budget.max_bytes
    return shown if fits else [item for item in shown if item["line"] == line]


def _excerpt_lines(request: Request, data: bytes) -> list[dict[str, Any]]:
    spans = list(_line_spans(data))
    target = request.line - request.first_line
    if target >= len(spans):
        raise _position_error("The file has no such line. Read it to see how many it has.", request)
    offset = _byte_offset(request, data, *spans[target])
    # A long line is cut around the position, the lines around it at their start.
    centers = [offset if number == target else span[0] for number, span in enumerate(spans)]
    return [
        {"line": request.first_line + number, "text": excerpt(data, *span, centers[number])}
        for number, span in enumerate(spans)
    ]


def _line_spans(data: bytes) -> list[tuple[int, int]]:
    spans, begin = [], 0
    while begin < len(data):
        end = data.find(LF, begin)
        end = len(data) if end < 0 else end
        spans.append((begin, end))
        begin = end + 1
    return spans


def _byte_offset(request: Request, data: bytes, begin: int, end: int) -> int:
    """The byte offset of the character; the position after the last one is valid, as in LSP."""
    line = data[begin:end]
    if line.isascii():
        length, before = len(line), request.character
    else:
        text = line.decode(errors="surrogateescape")
        length, before = len(text), len(text[: request.character].encode(errors="surrogateescape"))
    if request.character > length:
        raise _position_error(f"The line has only {length} characters. Point into it.", request)
    return begin + before


def _position_error(sentence: str, request: Request) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "INVALID_INPUT_VALUE",
        human_message=sentence,
        cause={"argument": "position", "line": request.line, "character": request.character},
    )


def _build_summary(output: Mapping[str, Any]) -> str:
    shown = output["lines"]
    return f"Lines {shown[0]['line']}{RANGE_DASH}{shown[-1]['line']}, counted from 0."
