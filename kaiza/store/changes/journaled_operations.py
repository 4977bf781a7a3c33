"""Operations read from an abandoned journal, and their comparison with the changes of the intent in the log.

A journal says how far a transaction came; what it is, the log says. Recovery acts on operations only where they are
exactly those of the intent: valid codes alone do not prove that a change was judged and recorded.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.domain.paths.protected_names import is_control_plane
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.changes.journal_lines import JournalLine
from kaiza.store.changes.operation import Operation

OperationOutline = tuple[str, str, str | None, str | None, str | None]
"""What an intent says of an operation: its kind, path, source, hash before and hash after."""


@dataclass(frozen=True, slots=True)
class JournaledOperations:
    """The operations of a journal, the directories created for them, and how far they came."""

    operations: tuple[Operation, ...]
    created_directories: tuple[RelPath, ...]
    staged_inodes: Sequence[int | None] | None
    """Inodes of the files that the operations bring in; None where the crash came before all were staged."""

    @classmethod
    def from_lines(cls, lines: Sequence[JournalLine], txn: str) -> "JournaledOperations":
        """Parse the lines of a journal. ValueError where they are not those of a transaction."""
        head = lines[0]
        try:
            operations = tuple(Operation.from_json(value, txn, number) for number, value in enumerate(head["steps"]))
            created = tuple(RelPath(tuple(map(str, parts))) for parts in head["made"])
        except (KeyError, TypeError) as fault:
            raise ValueError("not the first line of a journal") from fault
        # A rollback removes these directories: only parents of the journal's own paths are accepted.
        parents = {parent for operation in operations for parent in _parent_directories(operation.path)}
        if not parents.issuperset(created):
            raise ValueError("a directory that no operation needs")
        staged = next((line["staged"] for line in lines if "staged" in line), None)
        is_complete = isinstance(staged, list) and len(staged) == len(operations)
        return cls(operations, created, staged if is_complete else None)

    @property
    def paths(self) -> tuple[RelPath, ...]:
        """Every path that the operations change."""
        return tuple(path for each in self.operations for path in (each.path, each.source) if path is not None)

    def is_announced_by(self, changes: Sequence[Mapping[str, Any]]) -> bool:
        """Whether these are the operations of an intent's changes: same kinds, paths and hashes, in order."""
        outlines = [_outline_operation(operation) for operation in self.operations]
        for change in changes:
            expected = next((each for each in _expected_outlines(change) if outlines[: len(each)] == each), None)
            if expected is None:
                return False
            del outlines[: len(expected)]
        return not outlines

    def has_protected_path(self) -> bool:
        """Whether a path belongs to what governs the agent, such as plans or git hooks: no judged change has one."""
        return any(is_control_plane(path) for path in self.paths)


def _outline_operation(operation: Operation) -> OperationOutline:
    source = None if operation.source is None else str(operation.source)
    return (operation.kind, str(operation.path), source, operation.before_hash, operation.after_hash)


def _expected_outlines(change: Mapping[str, Any]) -> Iterator[list[OperationOutline]]:
    """The possible operations of a recorded change: a move is a rename, or a new file and a deletion."""
    path, source, before, after = (change[name] for name in ("path", "source", "before_hash", "after_hash"))
    if change["operation"] == "create":
        yield [("put", path, None, None, after)]
    elif change["operation"] == "modify":
        yield [("swap", path, None, before, after)]
    elif change["operation"] == "delete":
        yield [("take", path, None, before, None)]
    elif change["operation"] == "move":
        if after in (None, before):
            yield [("move", path, source, before, None)]
        yield [("put", path, source, before, after or before), ("take", source, None, before, None)]


def _parent_directories(path: RelPath) -> Iterator[RelPath]:
    while path.parts:
        path = path.parent
        yield path
