"""How an answer tells a change that is proposed: what it is, what it comes to, and the diff as far as it fits."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kaiza.domain import diff, lines, room
from kaiza.domain.change import Change
from kaiza.domain.diff import Diff, File
from kaiza.tools.target import Standing
from kaiza.tools.view import CallView

NEW_MODE = 0o644
MOST_LINES = 2_000_000
"""Lines on both sides that are compared; each costs some fifty bytes of memory beside its own."""
_FRAME = 1024
"""What the summary, the request's id and their names weigh."""

_PAST = {"create": "Created", "modify": "Modified", "delete": "Deleted", "move": "Moved"}
_WOULD = {"create": "Would create", "modify": "Would modify", "delete": "Would delete", "move": "Would move"}


def told(change: Change, *, dry_run: bool) -> dict[str, Any]:
    """One change; hashes where there is a file on that side."""
    output: dict[str, Any] = {
        "path": lines.shown(str(change.path)),
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
        output["source"] = lines.shown(str(change.source))
    return output


def unchanged(found: Standing, *, dry_run: bool) -> dict[str, Any]:
    """The file is already what was asked for."""
    change = Change(found.path, "modify", found.hash, found.hash, found.size)
    summary = f"{lines.shown(str(found.path))} is already so; nothing was changed."
    return {**told(change, dry_run=dry_run), "unchanged": True, "summary": short(summary)}


def summary(change: Change, *, dry_run: bool) -> str:
    """One change in one sentence."""
    verb = (_WOULD if dry_run else _PAST)[change.operation]
    where = lines.shown(str(change.path))
    if change.source is not None:
        where = f"{lines.shown(str(change.source))} to {where}"
    count = f", +{change.lines_added} -{change.lines_removed} lines" if change.operation != "move" else ""
    return short(f"{verb} {where}{count}.")


def short(sentence: str, most: int = 200) -> str:
    """A sentence cut to what a summary holds."""
    return sentence if len(sentence) <= most else sentence[: most - 1] + "…"


def with_diff(output: Mapping[str, Any], diffs: Iterable[Diff], view: CallView) -> dict[str, Any]:
    """The output with the diffs, cut at a line where a response would not carry more."""
    space = view.caps.response_bytes - room.RESERVE - _FRAME - room.weight(output)
    kept: list[str] = []
    cut = False
    for one in diffs:
        text = one.text.encode()
        fits = room.fitting(text, max(space, 0))
        cut = one.truncated or fits < len(text)
        kept.append(text[: text.rfind(b"\n", 0, fits) + 1 if fits < len(text) else fits].decode())
        space -= room.text_weight(text[:fits])
        if cut:
            break
    return {**output, "diff": "".join(kept), "diff_truncated": cut}


def difference(found: Standing | None, change: Change) -> Diff:
    """The diff of a change; of a file with too many lines, or whose bytes are not at hand, only its header."""
    mode = change.mode if change.mode is not None else (found.mode if found else NEW_MODE)
    path = change.source or change.path
    if found is None:
        return diff.unified(File(path, None), File(change.path, change.content, mode))
    at_hand = found.content is not None and _lines(found.content, change.content) <= MOST_LINES
    before = found.content if at_hand and found.content is not None else b""
    told_whole = at_hand or change.keeps_content
    after = before if change.keeps_content or not told_whole else change.content
    if change.operation == "delete":
        after = None
    made = diff.unified(File(path, before, found.mode), File(change.path, after, mode))
    return made if told_whole else replace(made, truncated=True)


def _lines(*contents: bytes | None) -> int:
    return sum(content.count(b"\n") for content in contents if content is not None)
