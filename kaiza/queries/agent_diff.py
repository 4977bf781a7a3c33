"""What agents changed, file by file, as diffs in git's format: from before the first call to after the last."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from kaiza.domain import errors
from kaiza.domain.paths import rel_path
from kaiza.domain.review.diff import is_binary
from kaiza.domain.review.evidence import ReviewEvidence
from kaiza.domain.review.files import FileDiffs, FileHistory, FileStep, build_histories
from kaiza.domain.text.binary_patch import format_binary_patch, is_safe_to_print
from kaiza.domain.text.unified_diff import FileVersion, compare, describe_binary
from kaiza.queries.review_contents import WorkspaceContents

_DEFAULT_MODE = 0o644


@dataclass(frozen=True, slots=True)
class AgentDiff:
    """Diff of one file. `data` None: it cannot be shown, and `note` says why.

    `patch`: the same change for git and for a terminal that is not Kaiza's to judge; it has no control characters.
    `has_outside`: something else changed the file between two of the calls, and that is in the diff as well.
    """

    path: str
    source: str | None
    operation: str
    data: bytes | None
    patch: bytes | None = None
    lines_added: int = 0
    lines_removed: int = 0
    note: str | None = None
    has_outside: bool = False
    is_binary: bool = False


def diff_files(
    evidence: ReviewEvidence, contents: WorkspaceContents, is_wanted: Callable[[str], bool]
) -> list[AgentDiff]:
    """The diff of each file that the selected calls changed and left changed, sorted by path."""
    diffs = []
    for history in build_histories(evidence.selected, [*evidence.context, *evidence.later]):
        last = history.last_selected
        if last is None or not (is_wanted(last.path) or is_wanted(history.first_path)):
            continue  # all was undone, or nobody asks for it
        diff = _diff_up_to(last, history, contents)
        # With the same content under the same name only the mode may differ.
        is_same = (history.first_hash, history.first_path) == (last.after_hash, last.path)
        if not is_same or diff.data:
            diffs.append(diff)
    return diffs


def _diff_up_to(last: FileStep, history: FileHistory, contents: WorkspaceContents) -> AgentDiff:
    first_path, steps = history.first_path, history.steps[: history.steps.index(last) + 1]
    operation = "modify" if first_path == last.path else "move"
    if history.first_hash is None or last.after_hash is None:
        operation = "create" if history.first_hash is None else "delete"
    is_shared = FileHistory(first_path, history.path, steps).find_gap() is not None
    diff = AgentDiff(
        last.path,
        first_path if first_path != last.path else None,
        operation,
        data=None,
        has_outside=is_shared or not all(step.author.is_selected for step in steps),
    )
    if any(map(contents.is_hidden, history.names)):
        return replace(diff, note="it may not be read")
    old, new = FileDiffs(history, contents.read_current(history.path), contents).up_to(last)
    if old is None or new is None:
        return replace(diff, note=f"what {'was there before' if old is None else 'Kaiza wrote'} was not kept")
    try:
        paths = rel_path.parse(first_path), rel_path.parse(last.path)
    except errors.SystemError:
        return replace(diff, note="its path is not valid")
    modes = (_DEFAULT_MODE if mode is None else mode for mode in (steps[0].mode_before, last.mode_after))
    kept = (None if history.first_hash is None else old, None if last.after_hash is None else new)
    before, after = map(FileVersion, paths, kept, modes)
    if is_binary(old) or is_binary(new):
        described = describe_binary(before, after)
        return replace(diff, data=described, patch=described, is_binary=True)
    compared = compare(before, after, max_bytes=sys.maxsize)
    patch = compared.data if is_safe_to_print(compared.data) else format_binary_patch(before, after)
    added, removed = compared.lines_added, compared.lines_removed
    return replace(diff, data=compared.data, patch=patch, lines_added=added, lines_removed=removed)
