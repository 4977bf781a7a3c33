"""Put a whole file in its place: a new one, or instead of exactly the one that was read."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kaiza.domain import diff, lines, paths
from kaiza.domain.change import Change
from kaiza.domain.paths import RelPath
from kaiza.domain.scope import CREATE, MODIFY, Wanted
from kaiza.tools import given, proposal, target
from kaiza.tools.target import Standing
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
    content = given.content("content", arguments["content"], arguments.get("encoding"))
    path = paths.parse(arguments["path"], root)
    return Request(path, content, arguments.get("expected_hash"), arguments.get("dry_run", False))


def wanted(request: Request, view: FilesView) -> tuple[Wanted, ...]:
    """What is there is modified, what is not is created; where all is as asked, what was asked."""
    size = target.glance(request.path, view)
    there = size is not None
    if size == len(request.content) and _done(request, target.standing(request.path, view)):
        there = request.expected_hash is not None
    return (Wanted(MODIFY if there else CREATE, request.path),)


def run(request: Request, view: FilesView) -> Answer:
    """Propose the file; where it is there already, say so."""
    found = target.standing(request.path, view, keep=view.caps.hashed_bytes)
    if found is not None and _done(request, found):
        return Answer(proposal.unchanged(found, dry_run=request.dry_run))
    change = _created(request, found) if request.expected_hash is None else _replaced(request, found)
    output = proposal.told(change, dry_run=request.dry_run)
    output["summary"] = proposal.summary(change, dry_run=request.dry_run)
    if request.dry_run:
        output = proposal.with_diff(output, [proposal.difference(found, change)], view)
    return Answer(output, (change,))


def _done(request: Request, found: Standing | None) -> bool:
    return found is not None and found.hash == request.after_hash


def _created(request: Request, found: Standing | None) -> Change:
    target.vacant(found)
    return Change(
        request.path,
        "create",
        after_hash=request.after_hash,
        size=len(request.content),
        lines_added=lines.count(request.content),
        content=request.content,
    )


def _replaced(request: Request, found: Standing | None) -> Change:
    found = target.there(request.path, found)
    target.expected(found, request.expected_hash or "")
    target.rewritable(found)
    if found.content is None:
        added, removed = lines.count(request.content), found.total_lines
    else:
        added, removed = diff.counts(found.content, request.content)
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
