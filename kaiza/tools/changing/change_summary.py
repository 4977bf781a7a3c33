"""How an answer tells a change that is proposed: what it is, what it comes to, and the diff as far as it fits."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kaiza.domain.change import Change
from kaiza.domain.paging import response_size
from kaiza.domain.text import lines, unified_diff
from kaiza.domain.text.unified_diff import FileDiff, FileVersion
from kaiza.tools.changing.target_file import TargetFile
from kaiza.tools.view import CallView

DEFAULT_FILE_MODE = 0o644
MAX_DIFF_LINES = 2_000_000
"""Lines on both sides that are compared; each costs some fifty bytes of memory beside its own."""
_FRAME_BYTES = 1024
"""What the summary, the request's id and their names weigh."""

_PAST_VERBS = {"create": "Created", "modify": "Modified", "delete": "Deleted", "move": "Moved"}
_DRY_RUN_VERBS = {"create": "Would create", "modify": "Would modify", "delete": "Would delete", "move": "Would move"}


def change_output(change: Change, *, dry_run: bool) -> dict[str, Any]:
    """One change; hashes where there is a file on that side."""
    output: dict[str, Any] = {
        "path": lines.escape_bytes(str(change.path)),
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
        output["source"] = lines.escape_bytes(str(change.source))
    return output


def unchanged_output(found: TargetFile, *, dry_run: bool) -> dict[str, Any]:
    """The file is already what was asked for."""
    change = Change(found.path, "modify", found.hash, found.hash, found.size)
    summary = f"{lines.escape_bytes(str(found.path))} is already so; nothing was changed."
    return {**change_output(change, dry_run=dry_run), "unchanged": True, "summary": shorten_sentence(summary)}


def summarize_change(change: Change, *, dry_run: bool) -> str:
    """One change in one sentence."""
    verb = (_DRY_RUN_VERBS if dry_run else _PAST_VERBS)[change.operation]
    where = lines.escape_bytes(str(change.path))
    if change.source is not None:
        where = f"{lines.escape_bytes(str(change.source))} to {where}"
    count = f", +{change.lines_added} -{change.lines_removed} lines" if change.operation != "move" else ""
    return shorten_sentence(f"{verb} {where}{count}.")


def shorten_sentence(sentence: str, most: int = 200) -> str:
    """A sentence cut to what a summary holds."""
    return sentence if len(sentence) <= most else sentence[: most - 1] + "…"


def with_diff(output: Mapping[str, Any], diffs: Iterable[FileDiff], view: CallView) -> dict[str, Any]:
    """The output with the diffs, cut at a line where a response would not carry more."""
    space = (
        view.caps.response_bytes - response_size.RESERVED_BYTES - _FRAME_BYTES - response_size.response_bytes(output)
    )
    kept: list[str] = []
    cut = False
    for one in diffs:
        text = one.text.encode()
        fits = response_size.longest_fitting_prefix(text, max(space, 0))
        cut = one.truncated or fits < len(text)
        kept.append(text[: text.rfind(b"\n", 0, fits) + 1 if fits < len(text) else fits].decode())
        space -= response_size.text_response_bytes(text[:fits])
        if cut:
            break
    return {**output, "diff": "".join(kept), "diff_truncated": cut}


def build_diff(found: TargetFile | None, change: Change) -> FileDiff:
    """The diff of a change; of a file with too many lines, or whose bytes are not at hand, only its header."""
    mode = change.mode if change.mode is not None else (found.mode if found else DEFAULT_FILE_MODE)
    path = change.source or change.path
    if found is None:
        return unified_diff.compare(FileVersion(path, None), FileVersion(change.path, change.content, mode))
    at_hand = found.content is not None and _line_count(found.content, change.content) <= MAX_DIFF_LINES
    before = found.content if at_hand and found.content is not None else b""
    told_whole = at_hand or change.is_plain_move
    after = before if change.is_plain_move or not told_whole else change.content
    if change.operation == "delete":
        after = None
    made = unified_diff.compare(FileVersion(path, before, found.mode), FileVersion(change.path, after, mode))
    return made if told_whole else replace(made, truncated=True)


def _line_count(*contents: bytes | None) -> int:
    return sum(content.count(b"\n") for content in contents if content is not None)
