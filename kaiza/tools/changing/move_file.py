"""Tool `move_file`: move a file with the expected hash to an unused path. Its content is hashed, never held."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.change import Change
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.scope import MOVE, RequestedOperation
from kaiza.tools.changing import change_summary, target_file
from kaiza.tools.view import Answer, WorkspaceView


@dataclass(frozen=True, slots=True)
class Request:
    """The source with its expected hash, and the destination."""

    source: RelPath
    destination: RelPath
    expected_hash: str
    dry_run: bool = False


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Parse both paths; they must differ."""
    source, destination = (rel_path.parse(arguments[name], root) for name in ("source", "destination"))
    if source == destination:
        raise errors.SystemError.tool_failure(
            "INVALID_INPUT_VALUE",
            human_message="Source and destination are the same. Choose another destination.",
            cause={"faults": [{"argument": "destination", "code": "INVALID_INPUT_VALUE"}], "count": 1},
        )
    return Request(source, destination, arguments["expected_hash"], arguments.get("dry_run", False))


def requested_operations(request: Request, _view: WorkspaceView) -> tuple[RequestedOperation, ...]:
    """A move from source to destination."""
    return (RequestedOperation(MOVE, request.destination, request.source),)


def run(request: Request, view: WorkspaceView) -> Answer:
    """Propose the move."""
    target = target_file.read_existing(request.source, view)
    target_file.require_hash(target, request.expected_hash)
    target_file.require_absent(target_file.read_target(request.destination, view))
    path, source, size, stamp = request.destination, request.source, target.size, target.stamp
    change = Change(path, "move", target.hash, target.hash, size, source=source, stat_signature=stamp)
    return change_summary.answer_change(change, target, view, dry_run=request.dry_run)
