"""Tool `read_files`: read several files. One that cannot be read gets an error and does not stop the others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.paging import response_size
from kaiza.domain.paths import rel_path
from kaiza.tools.reading import read_file
from kaiza.tools.view import Answer, FilesView

NAME = "read_files"


@dataclass(frozen=True, slots=True)
class Request:
    """The paths, unparsed: each is parsed and judged on its own."""

    paths: tuple[str, ...]
    root: str | None


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Return the request; the schema has checked the arguments."""
    return Request(tuple(arguments["paths"]), root)


def run(request: Request, view: FilesView) -> Answer:
    """Give each file an equal share of the response; the next ones get what one leaves over."""
    space = view.caps.response_bytes - response_size.RESERVED_BYTES
    files: list[dict[str, Any]] = []
    for number, path in enumerate(request.paths):
        files.append(_read_or_error(path, request.root, view, space // (len(request.paths) - number)))
        space -= response_size.response_bytes(files[-1]) + response_size.MIN_BYTE_COST
    output = {"files": files}
    return Answer({**output, "summary": _build_summary(output)})


def _read_or_error(path: str, root: str | None, view: FilesView, space: int) -> dict[str, Any]:
    try:
        return read_file.read_window(read_file.Request(rel_path.parse(path, root)), view, space)
    except errors.SystemError as error:
        if error.error_code == "CAP_EXCEEDED":
            raise  # the call's deadline, not a fault of this file
        echo = path[: rel_path.MAX_PATH].encode(errors="backslashreplace").decode()
        return {"path": echo, "error_code": error.error_code, "human_message": error.human_message}


def _build_summary(output: Mapping[str, Any]) -> str:
    files = output["files"]
    failed = sum("error_code" in file for file in files)
    cut = sum(file.get("truncated", False) for file in files)
    return f"{len(files) - failed} files read, {cut} of them truncated, {failed} not read."
