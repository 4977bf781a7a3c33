"""What agents changed, file by file, as diffs in git's format: from before the first call to after the last."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from kaiza.domain import errors
from kaiza.domain.paths import rel_path
from kaiza.domain.review.evidence import ReviewEvidence
from kaiza.domain.review.file_diffs import FileDiffs
from kaiza.domain.review.file_history import FileHistory, FileStep, build_histories
from kaiza.domain.review.hunks import is_binary
from kaiza.domain.text.binary_patch import format_binary_patch, is_safe_to_print
from kaiza.domain.text.unified_diff import FileVersion, compare, describe_binary
from kaiza.queries.review_contents import WorkspaceContents

_DEFAULT_MODE = 0o644


@dataclass(frozen=True, slots=True)
class AgentDiff:
    """Diff of one file. `data` None: it cannot be shown, and `note` says why.

    `patch`: the same change for git and for a terminal that is not Kaiza's to judge; it has no control characters.
    `has_outside`: something else changed the file between two of the calls, and that is in the diff too.
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
    histories = build_histories(evidence.selected, [*evidence.context, *evidence.later])
    return list(_diff_wanted(histories, contents, is_wanted))


def _diff_wanted(
    histories: Sequence[FileHistory], contents: WorkspaceContents, is_wanted: Callable[[str], bool]
) -> Iterator[AgentDiff]:
    for history in histories:
        last = history.last_selected
        if last is None:  # all was undone
            continue
        is_same = (history.first_hash, history.first_path) == (last.after_hash, last.path)
        if is_wanted(last.path) or is_wanted(history.first_path):
            diff = _diff_up_to(last, history, contents)
            if not is_same or diff.data:
                yield diff


def _diff_up_to(last: FileStep, history: FileHistory, contents: WorkspaceContents) -> AgentDiff:
    source = history.first_path if history.first_path != last.path else None
    diff = AgentDiff(last.path, source, _operation_of(history, last), None, has_outside=_has_outside(history, last))
    if any(map(contents.is_hidden, history.names)):
        return replace(diff, note="it may not be read")
    old, new = FileDiffs(history, contents.read_current(history.path), contents).up_to(last)
    if old is None or new is None:
        return replace(diff, note=f"what {'was there before' if old is None else 'Kaiza wrote'} was not kept")
    try:
        paths = rel_path.parse(history.first_path), rel_path.parse(last.path)
    except errors.SystemError:
        return replace(diff, note="its path is not valid")
    modes = _mode_of(history.steps[0].mode_before), _mode_of(last.mode_after)
    before = FileVersion(paths[0], None if history.first_hash is None else old, modes[0])
    after = FileVersion(paths[1], None if last.after_hash is None else new, modes[1])
    if is_binary(old) or is_binary(new):
        described = describe_binary(before, after)
        return replace(diff, data=described, patch=described, is_binary=True)
    compared = compare(before, after, max_bytes=sys.maxsize)
    patch = compared.data if is_safe_to_print(compared.data) else format_binary_patch(before, after)
    added, removed = compared.lines_added, compared.lines_removed
    return replace(diff, data=compared.data, patch=patch, lines_added=added, lines_removed=removed)


def _mode_of(recorded: int | None) -> int:
    return _DEFAULT_MODE if recorded is None else recorded


def _has_outside(history: FileHistory, last: FileStep) -> bool:
    """Whether something else changed the file before the last step of the diff."""
    upto = history.steps[: history.steps.index(last) + 1]
    return FileHistory(history.first_path, history.path, upto).has_gap() or any(
        not step.author.is_selected for step in upto
    )


def _operation_of(history: FileHistory, last: FileStep) -> str:
    if history.first_hash is None:
        return "create"
    if last.after_hash is None:
        return "delete"
    return "modify" if history.first_path == last.path else "move"
