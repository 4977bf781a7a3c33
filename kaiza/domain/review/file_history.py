"""Histories of files: every recorded change of a file in order, through renames, from its first state to its last."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kaiza.domain.audit.inverse_changes import is_undo, took_effect
from kaiza.domain.audit.record import Record
from kaiza.domain.audit.undone_changes import undone_paths
from kaiza.domain.review.diff import LineAuthor


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
    plan_id: str | None


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

    def has_gap(self) -> bool:
        """Whether something changed the file between two steps."""
        pairs = zip(self.steps, self.steps[1:], strict=False)
        return any(earlier.after_hash != later.before_hash for earlier, later in pairs)


def build_histories(selected: Sequence[Record], others: Iterable[Record]) -> list[FileHistory]:
    """Histories of the files that the selected records changed, sorted by path; with later steps of other records."""
    selected_seqs = {record["seq"] for record in selected}
    by_seq = {record["seq"]: record for record in [*selected, *others] if took_effect(record)}
    records = [by_seq[seq] for seq in sorted(by_seq)]
    undone = undone_paths(records)
    histories: list[FileHistory] = []
    current: dict[str, FileHistory] = {}
    for record in records:
        for step in _steps_of(record, undone, is_selected=record["seq"] in selected_seqs):
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
    request_id = str(record["request_id"])
    author = LineAuthor(record["seq"], request_id, is_selected)
    for change in record["changes"]:
        path, source = change["path"], change["source"]
        before = _find_mode(record, source or path)
        # The after-hash of a plain move may be left out: the content is the same.
        is_plain_move = source is not None and change["after_hash"] is None
        yield FileStep(
            author=author,
            seq=record["seq"],
            at=str(record["timestamp"]),
            tool_name=str(record["tool_name"] or (record["detail"] or {}).get("action") or record["kind"]),
            operation=change["operation"],
            path=path,
            source=source,
            before_hash=change["before_hash"],
            after_hash=change["before_hash"] if is_plain_move else change["after_hash"],
            mode_before=before,
            mode_after=change["mode"] if change["mode"] is not None else before,
            size=change["size"],
            is_undo=is_undo(record),
            is_undone=(request_id, path) in undone,
            plan_id=record["plan_id"],
        )


def _find_mode(record: Record, path: str) -> int | None:
    """Mode of a file before the change."""
    mode = ((record["detail"] or {}).get("modes") or {}).get(path)
    return mode if isinstance(mode, int) else None
