"""Delete exactly the file that was read; its bytes are hashed as they pass."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain.change import Change
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.scope import DELETE, RequestedOperation
from kaiza.domain.text import unified_diff
from kaiza.tools.changing import change_summary, target_file
from kaiza.tools.view import Answer, FilesView

NAME = "delete_file"


@dataclass(frozen=True, slots=True)
class Request:
    """Which file, as it was read."""

    path: RelPath
    expected_hash: str
    dry_run: bool = False


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Take the arguments as the schema left them."""
    path = rel_path.parse(arguments["path"], root)
    return Request(path, arguments["expected_hash"], arguments.get("dry_run", False))


def requested_operations(request: Request, _view: FilesView) -> tuple[RequestedOperation, ...]:
    """A deletion, and nothing else."""
    return (RequestedOperation(DELETE, request.path),)


def run(request: Request, view: FilesView) -> Answer:
    """Propose the deletion."""
    found = target_file.read_existing(request.path, view, keep=unified_diff.MAX_DIFF_BYTES if request.dry_run else 0)
    target_file.require_hash(found, request.expected_hash)
    change = Change(request.path, "delete", found.hash, lines_removed=found.total_lines, stat_signature=found.stamp)
    output = change_summary.change_output(change, dry_run=request.dry_run)
    output["summary"] = change_summary.summarize_change(change, dry_run=request.dry_run)
    if request.dry_run:
        output = change_summary.with_diff(output, [change_summary.build_diff(found, change)], view)
    return Answer(output, (change,))
