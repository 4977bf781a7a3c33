"""Files that the selected calls changed: history through renames, net diff, diff of each call, state now."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise

from kaiza.domain.audit.inverse_changes import is_undo, took_effect
from kaiza.domain.audit.record import Record
from kaiza.domain.audit.undone_changes import undone_paths
from kaiza.domain.review.authorship import WITHOUT_KAIZA, AuthoredVersion, LineAuthor, compare_versions
from kaiza.domain.review.diff import ReviewDiff, build_diff, fold_diff, is_binary, split_content
from kaiza.domain.review.evidence import MAX_SHOWN_BYTES, CurrentFile, ReviewContents
from kaiza.domain.review.records import merge_records
from kaiza.domain.review.report import FileCall, FileOperation, FileReview, FileState

MAX_CALL_DIFFS = 5_000
"""Diffs of single calls in one report; those of further calls are folded."""
_STATE_WORDS: dict[FileState, str] = {
    "as_left": "as Kaiza left it",
    "changed_since": "changed since, without Kaiza",
    "changed_by_later_call": "changed since by another call",
    "put_back": "put back: no change left",
    "unknown": "cannot be read now",
}


@dataclass(frozen=True, slots=True)
class FileStep:
    """One call's change of one file."""

    author: LineAuthor
    seq: int
    at: str
    tool_name: str
    operation: str
    path: str
    source: str | None
    before_hash: str | None
    after_hash: str | None
    mode_before: int | None
    mode_after: int | None
    size: int
    is_undo: bool
    is_undone: bool


@dataclass(slots=True)
class FileHistory:
    """Steps of one file. `first_path` is its name before the first step, `path` its name after the last."""

    first_path: str
    path: str
    steps: list[FileStep] = field(default_factory=list)

    @property
    def first_hash(self) -> str | None:
        """Hash of the content before the first step; None if there was no file."""
        return self.steps[0].before_hash

    @property
    def last_hash(self) -> str | None:
        """Hash of the content after the last step; None if it was deleted."""
        return self.steps[-1].after_hash

    @property
    def names(self) -> set[str]:
        """Every name that the file had."""
        return {self.first_path, *(step.path for step in self.steps)}

    @property
    def last_selected(self) -> FileStep | None:
        """The last step by a call that the report is about, and that was not undone."""
        return next((step for step in reversed(self.steps) if step.author.is_selected and not step.is_undone), None)

    def find_gap(self) -> tuple[FileStep, FileStep] | None:
        """The first two steps between which something else changed the file."""
        pairs = pairwise(self.steps)
        return next(((earlier, later) for earlier, later in pairs if earlier.after_hash != later.before_hash), None)


def build_histories(selected: Sequence[Record], others: Sequence[Record]) -> list[FileHistory]:
    """Histories of the files that the selected records changed, sorted by path; with later steps of other records."""
    selected_seqs = {record.seq for record in selected}
    records = list(filter(took_effect, merge_records(selected, others)))
    undone = undone_paths(records)
    histories: list[FileHistory] = []
    current: dict[str, FileHistory] = {}
    for record in records:
        for step in _steps_of(record, undone, is_selected=record.seq in selected_seqs):
            history = current.pop(step.source or step.path, None)
            if history is None and step.author.is_selected:
                history = FileHistory(step.source or step.path, step.path)
                histories.append(history)
            if history is not None:
                history.steps.append(step)
                history.path = step.path
                current[step.path] = history
    return sorted(histories, key=lambda history: (history.path, history.steps[0].seq))


def _steps_of(record: Record, undone: AbstractSet[tuple[str | None, str]], *, is_selected: bool) -> Iterator[FileStep]:
    request_id, detail = record.request_id or "", record.detail
    author = LineAuthor(record.seq, request_id, is_selected)
    for change in record.changes:
        path, source = change["path"], change["source"]
        mode = (detail.get("modes") or {}).get(source or path)
        mode_before = mode if isinstance(mode, int) else None
        # The after-hash of a plain move may be left out: the content is the same.
        is_plain_move = source is not None and change["after_hash"] is None
        yield FileStep(
            author=author,
            seq=record.seq,
            at=record.timestamp,
            tool_name=record.tool_name or str(detail.get("action") or record.kind),
            operation=change["operation"],
            path=path,
            source=source,
            before_hash=change["before_hash"],
            after_hash=change["before_hash"] if is_plain_move else change["after_hash"],
            mode_before=mode_before,
            mode_after=change["mode"] if change["mode"] is not None else mode_before,
            size=change["size"],
            is_undo=is_undo(record),
            is_undone=(request_id, path) in undone,
        )


class FileDiffs:
    """Diffs of one file's history. Contents are read once."""

    def __init__(self, history: FileHistory, now: CurrentFile, contents: ReviewContents) -> None:
        self._history = history
        self._now = now
        self._contents = contents
        self._cache: dict[str, bytes | None] = {}
        self._is_hidden = any(map(contents.is_hidden, history.names))
        if now.hash is not None and now.content is not None:
            self._cache[now.hash] = now.content

    def net(self) -> tuple[ReviewDiff, tuple[int, int]]:
        """The net diff up to the file as it is now, and how many lines the selected calls added and removed of it."""
        if not self._now.is_readable:
            return fold_diff("unreadable"), (0, 0)
        # Detours that ended at an earlier content are left out: what an undo put back is of its first author again.
        versions: list[tuple[str | None, LineAuthor]] = [(self._history.first_hash, WITHOUT_KAIZA)]
        for step in self._history.steps:
            _add_version(versions, step.before_hash, WITHOUT_KAIZA)
            _add_version(versions, step.after_hash, step.author)
        _add_version(versions, self._now.hash, WITHOUT_KAIZA)
        return self._compare(self._history.first_hash, self._now.hash, versions[1:])

    def of_step(self, step: FileStep) -> ReviewDiff:
        """One call's own diff."""
        return self._compare(step.before_hash, step.after_hash, [(step.after_hash, step.author)])[0]

    def up_to(self, last: FileStep) -> tuple[bytes | None, bytes | None]:
        """Contents before the first step and after a later one; None for one that was not kept."""
        return self._read(self._history.first_hash), self._read(last.after_hash)

    def _compare(
        self, first: str | None, last: str | None, versions: Sequence[tuple[str | None, LineAuthor]]
    ) -> tuple[ReviewDiff, tuple[int, int]]:
        """The diff through all versions, and the numbers of lines that selected calls added and removed."""
        old, new = self._read(first), self._read(last)
        if old is None or new is None:
            if self._is_hidden:
                return fold_diff("unreadable"), (0, 0)
            largest = max(self._now.size, *(step.size for step in self._history.steps))
            return fold_diff("oversized" if largest > MAX_SHOWN_BYTES else "not_kept"), (0, 0)
        if is_binary(old) or is_binary(new):
            return fold_diff("binary"), (0, 0)
        contents = ((self._read(digest), author) for digest, author in versions)
        authored = compare_versions(
            split_content(old),
            [AuthoredVersion(None if text is None else split_content(text), author) for text, author in contents],
        )
        return build_diff(authored), authored.count_lines(selected_only=True)

    def _read(self, digest: str | None) -> bytes | None:
        """Content by hash; empty where there is no file, None where it was not kept."""
        if digest is None:
            return b""
        if self._is_hidden:
            return None
        if digest not in self._cache:
            self._cache[digest] = self._contents.read_content(digest)
        return self._cache[digest]


def _add_version(versions: list[tuple[str | None, LineAuthor]], digest: str | None, author: LineAuthor) -> None:
    """Add a version, or go back to the earlier one with the same content."""
    earlier = next((at for at, (known, _) in enumerate(versions) if known == digest), None)
    if earlier is None:
        versions.append((digest, author))
    else:
        del versions[earlier + 1 :]


def review_files(histories: Sequence[FileHistory], contents: ReviewContents) -> list[FileReview]:
    """The review of each history."""
    room = MAX_CALL_DIFFS
    reviews = []
    for history in histories:
        now = contents.read_current(history.path)
        diffs, state = FileDiffs(history, now, contents), _find_state(history, now)
        diff, (added, removed) = diffs.net()
        reviews.append(
            FileReview(
                path=history.path,
                source=history.first_path if history.first_path != history.path else None,
                operation=_find_operation(history, now, state),
                state=state,
                state_words=_STATE_WORDS[state],
                before_hash=history.first_hash,
                now_hash=now.hash,
                mode_before=history.steps[0].mode_before,
                mode_now=now.mode if now.is_readable else history.steps[-1].mode_after,
                lines_added=added,
                lines_removed=removed,
                calls=tuple(
                    _review_call(step, diffs.of_step(step) if at < room else fold_diff("too_many"))
                    for at, step in enumerate(history.steps)
                ),
                diff=diff,
            )
        )
        room -= len(history.steps)
    return reviews


def _review_call(step: FileStep, diff: ReviewDiff) -> FileCall:
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
        diff=diff,
    )


def _find_state(history: FileHistory, now: CurrentFile) -> FileState:
    first, last = history.steps[0], history.steps[-1]
    if not now.is_readable:
        return "unknown"
    is_same_name = history.first_path == history.path or now.hash is None
    if now.hash == first.before_hash and is_same_name and _is_same_mode(first.mode_before, now.mode):
        return "put_back"
    # A file that a call created without naming a mode was not executable.
    is_usual = first.before_hash is None and last.mode_after is None
    is_made_executable = is_usual and bool((now.mode or 0) & 0o111)
    if now.hash != last.after_hash or not _is_same_mode(last.mode_after, now.mode) or is_made_executable:
        return "changed_since"
    return "as_left" if last.author.is_selected else "changed_by_later_call"


def _is_same_mode(recorded: int | None, now: int | None) -> bool:
    return recorded is None or now is None or recorded == now


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
