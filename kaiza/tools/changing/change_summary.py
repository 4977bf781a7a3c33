"""Output of a proposed change: its members, a sentence, and the diff as far as it fits into an answer."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kaiza.domain.change import Change
from kaiza.domain.paging.response_size import AnswerBudget
from kaiza.domain.paths.shown_names import escape_name
from kaiza.domain.text import unified_diff
from kaiza.domain.text.unified_diff import FileDiff, FileVersion
from kaiza.tools.changing.target_file import TargetFile
from kaiza.tools.view import Answer, WorkspaceView

DEFAULT_FILE_MODE = 0o644

_PAST_VERBS = {"create": "Created", "modify": "Modified", "delete": "Deleted", "move": "Moved"}
_MAX_SUMMARY = 200


def change_output(change: Change, *, dry_run: bool) -> dict[str, Any]:
    """The members of one change; a hash only where a file exists on that side."""
    output: dict[str, Any] = {
        "path": escape_name(str(change.path)),
        "operation": change.operation,
        "size": change.size,
        "lines_added": change.lines_added,
        "lines_removed": change.lines_removed,
        "unchanged": False,
        "dry_run": dry_run,
    }
    for name in ("before_hash", "after_hash"):
        if getattr(change, name) is not None:
            output[name] = getattr(change, name)
    if change.source is not None:
        output["source"] = escape_name(str(change.source))
    return output


def answer_unchanged(target: TargetFile, *, dry_run: bool) -> Answer:
    """The answer for a file that already has the requested content."""
    change = Change(target.path, "modify", target.hash, target.hash, target.size)
    summary = f"{escape_name(str(target.path))} already has this content; nothing was changed."
    return Answer({**change_output(change, dry_run=dry_run), "unchanged": True, "summary": _shorten(summary)})


def answer_change(
    change: Change, target: TargetFile | None, view: WorkspaceView, *, dry_run: bool, diff: FileDiff | None = None
) -> Answer:
    """The answer with one proposed change of a target; with the diff if it is given, or if nothing is to be changed."""
    path = escape_name(str(change.path))
    if change.source is not None:
        path = f"{escape_name(str(change.source))} to {path}"
    count = f", +{change.lines_added} -{change.lines_removed} lines" if change.operation != "move" else ""
    verb = f"Would {change.operation}" if dry_run else _PAST_VERBS[change.operation]
    output = {**change_output(change, dry_run=dry_run), "summary": _shorten(f"{verb} {path}{count}.")}
    if dry_run and diff is None:
        diff = build_diff(target, change)
    return Answer(output if diff is None else with_diff(output, [diff], view), (change,))


def _shorten(sentence: str) -> str:
    return sentence if len(sentence) <= _MAX_SUMMARY else sentence[: _MAX_SUMMARY - 1] + "…"


def with_diff(output: Mapping[str, Any], diffs: Iterable[FileDiff], view: WorkspaceView) -> dict[str, Any]:
    """Add the diffs to the output, cut at the end of a line where the answer is full."""
    budget = AnswerBudget.choose(view.caps)
    space = budget.max_bytes - budget.count_bytes(output)
    parts: list[str] = []
    truncated = False
    for diff in diffs:
        text = diff.text.encode()
        fits = budget.fit_text(text, max(space, 0))
        truncated = diff.truncated or fits < len(text)
        parts.append(text[: text.rfind(b"\n", 0, fits) + 1 if fits < len(text) else fits].decode())
        space -= budget.count_text_bytes(text[:fits])
        if truncated:
            break
    return {**output, "diff": "".join(parts), "diff_truncated": truncated}


def build_diff(target: TargetFile | None, change: Change) -> FileDiff:
    """Diff one change; only the header for a file whose content was not read."""
    mode = change.mode if change.mode is not None else (target.mode if target else DEFAULT_FILE_MODE)
    path = change.source or change.path
    if target is None:
        return unified_diff.compare(FileVersion(path, None), FileVersion(change.path, change.content, mode))
    before = target.content or b""
    is_complete = target.content is not None or change.is_plain_move
    after = before if change.is_plain_move or not is_complete else change.content
    if change.operation == "delete":
        after = None
    diff = unified_diff.compare(FileVersion(path, before, target.mode), FileVersion(change.path, after, mode))
    return diff if is_complete else replace(diff, truncated=True)
