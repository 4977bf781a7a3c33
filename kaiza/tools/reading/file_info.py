"""Tool `file_info`: metadata of a path. A file that must not be read is described without its hash."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.paths.shown_names import escape_name
from kaiza.domain.text import lines
from kaiza.tools.reading import file_reader
from kaiza.tools.view import Answer, WorkspaceView


@dataclass(frozen=True, slots=True)
class Request:
    """The path, and whether to hash a large file."""

    path: RelPath
    with_hash: bool = False


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Parse the path."""
    return Request(rel_path.parse(arguments["path"], root), arguments.get("with_hash", False))


def run(request: Request, view: WorkspaceView) -> Answer:
    """Describe the path; open only a regular file that may be read."""
    entry = view.stat(request.path)
    output: dict[str, Any] = {
        "path": escape_name(str(entry.real)),
        "type": entry.type,
        "modified": entry.modified,
        "mode": f"{entry.mode:04o}",
    }
    if entry.size is not None:
        output["size"] = entry.size
    hint = ""
    if entry.type == "file" and not view.is_unreadable(entry.real):
        with view.open_file(entry.real) as file:
            utf8 = lines.Utf8Check()
            summary = file_reader.summarize_file(file, view, utf8, with_hash=request.with_hash)
        if summary is None:
            hint = file_reader.NO_HASH
        else:
            output["size"], output["hash"] = summary.size, summary.hex_digest
            output["line_ending"] = summary.line_ending
            output["encoding"] = "utf-8" if utf8.is_valid else "base64"
    size = f", {output['size']} bytes" if "size" in output else ""
    return Answer({**output, "summary": f"{entry.type}{size}, mode {output['mode']}.{hint}"})
