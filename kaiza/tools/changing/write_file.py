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
from kaiza.tools.view import Answer, WorkspaceView


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


def requested_operations(request: Request, view: WorkspaceView) -> tuple[RequestedOperation, ...]:
    """A modification if the file exists, else a creation; of a file that is unchanged, the one that was requested."""
    size = target_file.stat_target(request.path, view)
    exists = size is not None
    if size == len(request.content):
        # A retried creation finds its own file. It is judged as the creation that it was, or the plan might refuse it.
        target = target_file.read_target(request.path, view)
        if target is not None and target.hash == request.after_hash:
            exists = request.expected_hash is not None
    return (RequestedOperation(MODIFY if exists else CREATE, request.path),)


def run(request: Request, view: WorkspaceView) -> Answer:
    """Propose the file; propose nothing if it already has this content."""
    content, after_hash, limit = request.content, request.after_hash, view.caps.written_bytes
    if len(content) > limit:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message=f"The content may have {limit} bytes. Create the file with its first part, and add the "
            "others with edit_file.",
            cause={"cap": "written_bytes", "limit": limit, "size": len(content)},
        )
    target = target_file.read_target(request.path, view, keep=view.caps.hashed_bytes)
    if target is not None and target.hash == after_hash:
        return change_summary.answer_unchanged(target, dry_run=request.dry_run)
    if request.expected_hash is None:
        target_file.require_absent(target)
        added, removed = lines.count(content), 0
    else:
        target = target_file.require_present(request.path, target)
        target_file.require_hash(target, request.expected_hash)
        target_file.require_writable(target)
        if target.content is None:  # too large for a diff: all of it counts as replaced
            added, removed = lines.count(content), target.total_lines
        else:
            added, removed = unified_diff.count_changed_lines(target.content, content)
    change = Change(
        request.path,
        "modify" if target else "create",
        target.hash if target else None,
        after_hash,
        len(content),
        added,
        removed,
        content=content,
    )
    return change_summary.answer_change(change, target, view, dry_run=request.dry_run)
