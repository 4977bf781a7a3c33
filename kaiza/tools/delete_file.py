"""Delete exactly the file that was read; its bytes are hashed as they pass."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import diff, paths
from kaiza.domain.change import Change
from kaiza.domain.paths import RelPath
from kaiza.domain.scope import DELETE, Wanted
from kaiza.tools import proposal, target
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
    path = paths.parse(arguments["path"], root)
    return Request(path, arguments["expected_hash"], arguments.get("dry_run", False))


def wanted(request: Request, _view: FilesView) -> tuple[Wanted, ...]:
    """A deletion, and nothing else."""
    return (Wanted(DELETE, request.path),)


def run(request: Request, view: FilesView) -> Answer:
    """Propose the deletion."""
    found = target.existing(request.path, view, keep=diff.LARGEST if request.dry_run else 0)
    target.expected(found, request.expected_hash)
    change = Change(request.path, "delete", found.hash, lines_removed=found.total_lines, seen_as=found.stamp)
    output = proposal.told(change, dry_run=request.dry_run)
    output["summary"] = proposal.summary(change, dry_run=request.dry_run)
    if request.dry_run:
        output = proposal.with_diff(output, [proposal.difference(found, change)], view)
    return Answer(output, (change,))
