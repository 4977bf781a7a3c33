"""Tool `read_location`: read the line at an LSP position, and the lines around it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.paging.response_size import AnswerBudget
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.paths.shown_names import escape_name
from kaiza.domain.text.lines import LF, RANGE_DASH, LineWindow, excerpt
from kaiza.tools.reading import file_reader
from kaiza.tools.view import Answer, WorkspaceView

MAX_WINDOW_BYTES = 16 << 20
"""Bytes of a file that are held at most to find a character in a long line."""


@dataclass(frozen=True, slots=True)
class Request:
    """The file, the position in it, and the number of lines around it."""

    path: RelPath
    line: int
    character: int
    context_lines: int


def parse(arguments: Mapping[str, Any], root: str) -> Request:
    """Parse the URI; the schema has checked the rest."""
    position = arguments["position"]
    return Request(
        rel_path.parse_uri(arguments["uri"], root),
        position["line"],
        position["character"],
        arguments.get("context_lines", 0),
    )


def run(request: Request, view: WorkspaceView) -> Answer:
    """Return the lines; INVALID_INPUT_VALUE if the file has no such position."""
    first_line = max(0, request.line - request.context_lines)
    most_lines = request.line + request.context_lines + 1 - first_line
    window = LineWindow(first_line, 0, most_lines=most_lines, most_bytes=MAX_WINDOW_BYTES)
    with view.open_file(request.path) as file:
        summary = file_reader.summarize_file(file, view, window)
    data = bytes(window.data)
    spans = list(_line_spans(data))
    target = request.line - first_line
    if target >= len(spans):
        raise _position_error("The file has no such line. Read it to see how many it has.", request)
    # A long line is cut around the position, the lines around it at their start.
    centers = [begin for begin, _ in spans]
    centers[target] = _byte_offset(request, data, *spans[target])
    shown = [
        {"line": first_line + number, "text": excerpt(data, *span, centers[number])}
        for number, span in enumerate(spans)
    ]
    output: dict[str, Any] = {
        "uri": rel_path.to_uri(view.root, file.real),
        "path": escape_name(str(file.real)),
        "position": {"line": request.line, "character": request.character},
        "lines": shown,
    }
    if summary is not None:
        output["hash"] = summary.hex_digest
    budget = AnswerBudget.choose(view.caps)
    if budget.count_bytes(output) > budget.max_bytes:
        shown = output["lines"] = [shown[target]]
    output["summary"] = f"Lines {shown[0]['line']}{RANGE_DASH}{shown[-1]['line']}, counted from 0."
    return Answer(output)


def _line_spans(data: bytes) -> Iterator[tuple[int, int]]:
    begin = 0
    while begin < len(data):
        end = data.find(LF, begin)
        end = len(data) if end < 0 else end
        yield begin, end
        begin = end + 1


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
