"""Tool `write_file`: create a file, or replace the content of one that has the expected hash."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kaiza.domain import errors
from kaiza.domain.change import Change
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.scope import CREATE, MODIFY, RequestedOperation
from kaiza.domain.text import lines, unified_diff
from kaiza.tools.changing import change_summary, target_file
from kaiza.tools.changing.target_file import TargetFile
from kaiza.tools.view import Answer, FilesView

NAME = "write_file"


@dataclass(frozen=True, slots=True)
class Request:
    """The path, its new content, and the hash of the content to replace; None creates the file."""

    path: RelPath
    content: bytes = field(repr=False)
    expected_hash: str | None = None
    dry_run: bool = False

    @property
    def after_hash(self) -> str:
        """Hash of the new content."""
        return hashlib.sha256(self.content).hexdigest()


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Decode the content and parse the path."""
    content = target_file.decode("content", arguments["content"], arguments.get("encoding"))
    path = rel_path.parse(arguments["path"], root)
    return Request(path, content, arguments.get("expected_hash"), arguments.get("dry_run", False))


def requested_operations(request: Request, view: FilesView) -> tuple[RequestedOperation, ...]:
    """A modification if the file exists, else a creation; of a file that is unchanged, the one that was requested."""
    size = target_file.stat_target(request.path, view)
    exists = size is not None
    # A retried creation finds its own file. It is judged as the creation that it was, or the plan might refuse it.
    if size == len(request.content) and _is_unchanged(request, target_file.read_target(request.path, view)):
        exists = request.expected_hash is not None
    return (RequestedOperation(MODIFY if exists else CREATE, request.path),)


def run(request: Request, view: FilesView) -> Answer:
    """Propose the file; propose nothing if it already has this content."""
    _require_size(request, view)
    target = target_file.read_target(request.path, view, keep=view.caps.hashed_bytes)
    if target is not None and _is_unchanged(request, target):
        return Answer(change_summary.unchanged_output(target, dry_run=request.dry_run))
    new_change = _creation_change if request.expected_hash is None else _replacement_change
    change = new_change(request, target)
    output = change_summary.change_output(change, dry_run=request.dry_run)
    output["summary"] = change_summary.summarize_change(change, dry_run=request.dry_run)
    if request.dry_run:
        output = change_summary.with_diff(output, [change_summary.build_diff(target, change)], view)
    return Answer(output, (change,))


def _require_size(request: Request, view: FilesView) -> None:
    size, limit = len(request.content), view.caps.written_bytes
    if size > limit:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message=f"The content may have {limit} bytes. Create the file with its first part, and add the "
            "others with edit_file.",
            cause={"cap": "written_bytes", "limit": limit, "size": size},
        )


def _is_unchanged(request: Request, target: TargetFile | None) -> bool:
    return target is not None and target.hash == request.after_hash


def _creation_change(request: Request, target: TargetFile | None) -> Change:
    target_file.require_absent(target)
    return Change(
        request.path,
        "create",
        after_hash=request.after_hash,
        size=len(request.content),
        lines_added=lines.count(request.content),
        content=request.content,
    )


def _replacement_change(request: Request, target: TargetFile | None) -> Change:
    target = target_file.require_present(request.path, target)
    target_file.require_hash(target, request.expected_hash or "")
    target_file.require_writable(target)
    if target.content is None:
        added, removed = lines.count(request.content), target.total_lines
    else:
        added, removed = unified_diff.count_changed_lines(target.content, request.content)
    return Change(
        request.path,
        "modify",
        target.hash,
        request.after_hash,
        len(request.content),
        added,
        removed,
        content=request.content,
    )
