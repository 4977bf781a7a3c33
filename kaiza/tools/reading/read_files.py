"""Tool `read_files`: read several files. One that cannot be read gets an error and does not stop the others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.paging.response_size import AnswerBudget
from kaiza.domain.paths import rel_path
from kaiza.tools.reading import read_file
from kaiza.tools.view import Answer, WorkspaceView

_MIN_SHARE = 2048
"""Bytes that a file gets at least: shares of many files would be too small to be useful."""


@dataclass(frozen=True, slots=True)
class Request:
    """The paths, unparsed: each is parsed and judged on its own."""

    paths: tuple[str, ...]
    root: str | None


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Return the request; the schema has checked the arguments."""
    return Request(tuple(arguments["paths"]), root)


def run(request: Request, view: WorkspaceView) -> Answer:
    """Give each file an equal share of the answer; the next ones get what one leaves over.

    Files for which there is no room left are not read.
    """
    budget = AnswerBudget.choose(view.caps)
    space, asked = budget.max_bytes, len(request.paths)
    files: list[dict[str, Any]] = []
    for number, path in enumerate(request.paths):
        share = min(space, max(space // (asked - number), _MIN_SHARE))
        file = _read_or_error(path, request.root, view, budget._replace(max_bytes=share))
        space -= budget.count_bytes(file) + budget.min_byte_cost
        if space < 0 and files:
            break
        files.append(file)
    failed = sum("error_code" in file for file in files)
    cut = sum(file.get("truncated", False) for file in files)
    summary = f"{len(files) - failed} files read, {cut} of them truncated, {failed} not read; lines counted from 0."
    rest = f" Call again with the last {asked - len(files)} paths." if len(files) < asked else ""
    hint = " Call read_file with the start_line in next to read on." if cut else ""
    return Answer({"files": files, "summary": f"{summary}{rest}{hint}", "truncated": len(files) < asked or cut > 0})


def _read_or_error(path: str, root: str | None, view: WorkspaceView, budget: AnswerBudget) -> dict[str, Any]:
    try:
        window = read_file.read_window(read_file.Request(rel_path.parse(path, root)), view, budget)
        return {name: value for name, value in window.items() if name != "uri"}
    except errors.SystemError as error:
        if error.error_code == "CAP_EXCEEDED":
            raise  # the call's deadline, not a fault of this file
        echo = path[: rel_path.MAX_PATH].encode(errors="backslashreplace").decode()
        return {"path": echo, "error_code": error.error_code, "human_message": error.human_message}
