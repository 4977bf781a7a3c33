"""Tool `delete_file`: delete a file if its content has the expected hash. Large files are hashed in chunks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain.change import Change
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.scope import DELETE, RequestedOperation
from kaiza.domain.text import unified_diff
from kaiza.tools.changing import change_summary, target_file
from kaiza.tools.view import Answer, WorkspaceView


@dataclass(frozen=True, slots=True)
class Request:
    """The path and the expected hash of its content."""

    path: RelPath
    expected_hash: str
    dry_run: bool = False


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Parse the path; the schema has checked the rest."""
    path = rel_path.parse(arguments["path"], root)
    return Request(path, arguments["expected_hash"], arguments.get("dry_run", False))


def requested_operations(request: Request, _view: WorkspaceView) -> tuple[RequestedOperation, ...]:
    """A deletion of the path."""
    return (RequestedOperation(DELETE, request.path),)


def run(request: Request, view: WorkspaceView) -> Answer:
    """Propose the deletion."""
    target = target_file.read_existing(request.path, view, keep=unified_diff.MAX_DIFF_BYTES if request.dry_run else 0)
    target_file.require_hash(target, request.expected_hash)
    change = Change(request.path, "delete", target.hash, lines_removed=target.total_lines, stat_signature=target.stamp)
    return change_summary.answer_change(change, target, view, dry_run=request.dry_run)
