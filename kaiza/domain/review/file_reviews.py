"""Files of the report: state, net diff and calls of every file that the selected calls changed."""

from collections.abc import Sequence

from kaiza.domain.review.evidence import CurrentFile, ReviewContents
from kaiza.domain.review.file_diffs import FileDiffs
from kaiza.domain.review.file_history import FileHistory, FileStep
from kaiza.domain.review.hunks import fold_diff
from kaiza.domain.review.report import FileCall, FileOperation, FileReview, FileState

MAX_CALL_DIFFS = 5_000
"""Diffs of single calls in one report; those of further calls are folded."""
_WORDS: dict[FileState, str] = {
    "as_left": "as Kaiza left it",
    "changed_since": "changed since, without Kaiza",
    "changed_by_later_call": "changed since by another call",
    "put_back": "put back: no change left",
    "unknown": "cannot be read now",
}


def review_files(histories: Sequence[FileHistory], contents: ReviewContents) -> list[FileReview]:
    """The review of each history."""
    room = MAX_CALL_DIFFS
    reviews = []
    for history in histories:
        reviews.append(_review_file(history, contents, room))
        room -= len(history.steps)
    return reviews


def _review_file(history: FileHistory, contents: ReviewContents, room: int) -> FileReview:
    now = contents.read_current(history.path)
    diffs = FileDiffs(history, now, contents)
    state = _find_state(history, now)
    diff, (added, removed) = diffs.net()
    first, last = history.steps[0], history.steps[-1]
    return FileReview(
        path=history.path,
        source=history.first_path if history.first_path != history.path else None,
        operation=_find_operation(history, now, state),
        state=state,
        state_words=_WORDS[state],
        before_hash=history.first_hash,
        now_hash=now.hash,
        mode_before=first.mode_before,
        mode_now=now.mode if now.is_readable else last.mode_after,
        lines_added=added,
        lines_removed=removed,
        diff=diff,
        calls=tuple(_review_call(step, diffs, is_shown=at < room) for at, step in enumerate(history.steps)),
    )


def _review_call(step: FileStep, diffs: FileDiffs, *, is_shown: bool) -> FileCall:
    return FileCall(
        seq=step.seq,
        request_id=step.author.request_id or "",
        at=step.at,
        tool_name=step.tool_name,
        operation=step.operation,
        source=step.source,
        is_undo=step.is_undo,
        is_undone=step.is_undone,
        is_selected=step.author.is_selected,
        diff=diffs.of_step(step) if is_shown else fold_diff("too_many"),
    )


def _find_state(history: FileHistory, now: CurrentFile) -> FileState:
    last = history.steps[-1]
    if not now.is_readable:
        return "unknown"
    same_name = history.first_path == history.path or now.hash is None
    first_mode = history.steps[0].mode_before
    if now.hash == history.first_hash and same_name and _is_same_mode(first_mode, now.mode):
        return "put_back"
    if now.hash != last.after_hash or not _is_same_mode(last.mode_after, now.mode) or _is_made_executable(history, now):
        return "changed_since"
    return "as_left" if last.author.is_selected else "changed_by_later_call"


def _is_same_mode(recorded: int | None, now: int | None) -> bool:
    return recorded is None or now is None or recorded == now


def _is_made_executable(history: FileHistory, now: CurrentFile) -> bool:
    """Whether a file that a call created without naming a mode, so not executable, is executable now."""
    is_usual = history.first_hash is None and history.steps[-1].mode_after is None
    return is_usual and bool((now.mode or 0) & 0o111)


def _find_operation(history: FileHistory, now: CurrentFile, state: FileState) -> FileOperation:
    if state == "put_back":
        return "none"
    after = history.last_hash if state == "unknown" else now.hash
    if history.first_hash is None:
        return "create" if after is not None else "none"
    if after is None:
        return "delete"
    if history.first_path != history.path:
        return "move"
    return "modify" if after != history.first_hash else "mode"
