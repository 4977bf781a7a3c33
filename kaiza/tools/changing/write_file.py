"""Put a whole file in its place: a new one, or instead of exactly the one that was read."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
    """Which file, its bytes, and what is to be replaced; without a hash, nothing."""

    path: RelPath
    content: bytes = field(repr=False)
    expected_hash: str | None = None
    dry_run: bool = False

    @property
    def after_hash(self) -> str:
        """What the file's hash will be."""
        return hashlib.sha256(self.content).hexdigest()


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Take the arguments as the schema left them."""
    content = target_file.decode("content", arguments["content"], arguments.get("encoding"))
    path = rel_path.parse(arguments["path"], root)
    return Request(path, content, arguments.get("expected_hash"), arguments.get("dry_run", False))


def requested_operations(request: Request, view: FilesView) -> tuple[RequestedOperation, ...]:
    """What is there is modified, what is not is created; where all is as asked, what was asked."""
    size = target_file.stat_target(request.path, view)
    there = size is not None
    if size == len(request.content) and _is_unchanged(request, target_file.read_target(request.path, view)):
        there = request.expected_hash is not None
    return (RequestedOperation(MODIFY if there else CREATE, request.path),)


def run(request: Request, view: FilesView) -> Answer:
    """Propose the file; where it is there already, say so."""
    found = target_file.read_target(request.path, view, keep=view.caps.hashed_bytes)
    if found is not None and _is_unchanged(request, found):
        return Answer(change_summary.unchanged_output(found, dry_run=request.dry_run))
    change = _creation_change(request, found) if request.expected_hash is None else _replacement_change(request, found)
    output = change_summary.change_output(change, dry_run=request.dry_run)
    output["summary"] = change_summary.summarize_change(change, dry_run=request.dry_run)
    if request.dry_run:
        output = change_summary.with_diff(output, [change_summary.build_diff(found, change)], view)
    return Answer(output, (change,))


def _is_unchanged(request: Request, found: TargetFile | None) -> bool:
    return found is not None and found.hash == request.after_hash


def _creation_change(request: Request, found: TargetFile | None) -> Change:
    target_file.require_absent(found)
    return Change(
        request.path,
        "create",
        after_hash=request.after_hash,
        size=len(request.content),
        lines_added=lines.count(request.content),
        content=request.content,
    )


def _replacement_change(request: Request, found: TargetFile | None) -> Change:
    found = target_file.require_present(request.path, found)
    target_file.require_hash(found, request.expected_hash or "")
    target_file.require_writable(found)
    if found.content is None:
        added, removed = lines.count(request.content), found.total_lines
    else:
        added, removed = unified_diff.count_changed_lines(found.content, request.content)
    return Change(
        request.path,
        "modify",
        found.hash,
        request.after_hash,
        len(request.content),
        added,
        removed,
        content=request.content,
    )
