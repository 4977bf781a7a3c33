"""Tool `edit_file`: replace texts or ranges in a file with the expected hash; each must match exactly one place."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kaiza.domain import errors
from kaiza.domain.change import Change
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.scope import MODIFY, RequestedOperation
from kaiza.domain.text import edits, unified_diff
from kaiza.domain.text.edits import Position, ReplaceRange, ReplaceText
from kaiza.tools.changing import change_summary, target_file
from kaiza.tools.view import Answer, WorkspaceView

_FAULT_MESSAGES = {
    "old_text": "An edit has neither old_text nor range. Give one of them.",
    "range": "An edit has both old_text and range. Give one of them.",
    "new_text": "An edit's new_text equals its old_text. Leave it out, it changes nothing.",
}


@dataclass(frozen=True, slots=True)
class Request:
    """The path, the expected hash of its content, and the edits."""

    path: RelPath
    expected_hash: str
    edits: tuple[ReplaceText | ReplaceRange, ...] = field(repr=False)
    dry_run: bool = False


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Parse the path and the edits; each edit has either an old_text or a range."""
    parsed = tuple(_parse_edit(number, edit) for number, edit in enumerate(arguments["edits"]))
    path = rel_path.parse(arguments["path"], root)
    return Request(path, arguments["expected_hash"], parsed, arguments.get("dry_run", False))


def requested_operations(request: Request, _view: WorkspaceView) -> tuple[RequestedOperation, ...]:
    """A modification of the path, whether or not it exists."""
    return (RequestedOperation(MODIFY, request.path),)


def run(request: Request, view: WorkspaceView) -> Answer:
    """Propose the edited file, with its diff."""
    target = target_file.read_existing(request.path, view, keep=view.caps.hashed_bytes)
    target_file.require_hash(target, request.expected_hash)
    target_file.require_writable(target)
    before = target_file.require_content(target, view)
    after, replaced = edits.apply(before, request.edits)  # on the bytes whose hash was checked, not on a second read
    diff = unified_diff.compare(
        unified_diff.FileVersion(request.path, before, target.mode),
        unified_diff.FileVersion(request.path, after, target.mode),
        replaced=replaced,
    )
    after_hash = hashlib.sha256(after).hexdigest()
    counts = (len(after), diff.lines_added, diff.lines_removed)
    change = Change(request.path, "modify", target.hash, after_hash, *counts, content=after)
    return change_summary.answer_change(change, target, view, dry_run=request.dry_run, diff=diff)


def _parse_edit(number: int, arguments: Mapping[str, Any]) -> ReplaceText | ReplaceRange:
    new_text = target_file.decode(f"edits.{number}.new_text", arguments["new_text"])
    if "old_text" not in arguments and "range" not in arguments:
        raise _edit_error(number, "MISSING_REQUIRED_FIELD", "old_text")
    if "old_text" in arguments and "range" in arguments:
        raise _edit_error(number, "INVALID_INPUT_VALUE", "range")
    if "range" in arguments:
        return ReplaceRange(Position(**arguments["range"]["start"]), Position(**arguments["range"]["end"]), new_text)
    old_text = target_file.decode(f"edits.{number}.old_text", arguments["old_text"])
    if old_text == new_text:
        raise _edit_error(number, "INVALID_INPUT_VALUE", "new_text")
    return ReplaceText(old_text, new_text)


def _edit_error(number: int, code: str, member: str) -> errors.SystemError:
    fault = {"argument": f"edits.{number}.{member}", "code": code}
    return errors.SystemError.tool_failure(
        code, human_message=_FAULT_MESSAGES[member], cause={"faults": [fault], "count": 1}
    )
