"""Change places in a file: each names the one place it means in the bytes that were read."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kaiza.domain import errors
from kaiza.domain.change import Change
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.scope import MODIFY, RequestedOperation
from kaiza.domain.text import edits as edit
from kaiza.domain.text import unified_diff
from kaiza.domain.text.edits import Position, ReplaceRange, ReplaceText
from kaiza.tools.changing import change_summary, target_file
from kaiza.tools.view import Answer, FilesView

NAME = "edit_file"


@dataclass(frozen=True, slots=True)
class Request:
    """Which file, as it was read, and what to change in it."""

    path: RelPath
    expected_hash: str
    edits: tuple[ReplaceText | ReplaceRange, ...] = field(repr=False)
    dry_run: bool = False


def parse(arguments: Mapping[str, Any], root: str | None) -> Request:
    """Take the arguments as the schema left them; each edit has an old_text or a range."""
    edits = tuple(_parse_edit(number, one) for number, one in enumerate(arguments["edits"]))
    path = rel_path.parse(arguments["path"], root)
    return Request(path, arguments["expected_hash"], edits, arguments.get("dry_run", False))


def requested_operations(request: Request, _view: FilesView) -> tuple[RequestedOperation, ...]:
    """An edit modifies, whatever is there."""
    return (RequestedOperation(MODIFY, request.path),)


def run(request: Request, view: FilesView) -> Answer:
    """Propose the edited file, and show what becomes of it."""
    found = target_file.read_existing(request.path, view, keep=view.caps.hashed_bytes)
    target_file.require_hash(found, request.expected_hash)
    target_file.require_writable(found)
    before = target_file.require_content(found, view)
    after = edit.apply(before, request.edits)
    made = unified_diff.compare(
        unified_diff.FileVersion(request.path, before, found.mode),
        unified_diff.FileVersion(request.path, after, found.mode),
    )
    after_hash = hashlib.sha256(after).hexdigest()
    counts = (made.lines_added, made.lines_removed)
    change = Change(request.path, "modify", found.hash, after_hash, len(after), *counts, content=after)
    output = change_summary.change_output(change, dry_run=request.dry_run)
    output["summary"] = change_summary.summarize_change(change, dry_run=request.dry_run)
    return Answer(change_summary.with_diff(output, [made], view), (change,))


def _parse_edit(number: int, told: Mapping[str, Any]) -> ReplaceText | ReplaceRange:
    new_text = target_file.decode(f"edits.{number}.new_text", told["new_text"])
    if "old_text" not in told and "range" not in told:
        raise _edit_error(number, "MISSING_REQUIRED_FIELD", "old_text")
    if "old_text" in told and "range" in told:
        raise _edit_error(number, "INVALID_INPUT_VALUE", "range")
    if "range" in told:
        return ReplaceRange(Position(**told["range"]["start"]), Position(**told["range"]["end"]), new_text)
    old_text = target_file.decode(f"edits.{number}.old_text", told["old_text"])
    if old_text == new_text:
        raise _edit_error(number, "INVALID_INPUT_VALUE", "new_text")
    return ReplaceText(old_text, new_text)


def _edit_error(number: int, code: str, member: str) -> errors.SystemError:
    sentences = {
        "old_text": "An edit says neither old_text nor range. Give one of them.",
        "range": "An edit says both old_text and range. Give one of them.",
        "new_text": "An edit's new_text is its old_text. Leave out what changes nothing.",
    }
    fault = {"argument": f"edits.{number}.{member}", "code": code}
    return errors.SystemError.tool_failure(code, human_message=sentences[member], cause={"faults": [fault], "count": 1})
