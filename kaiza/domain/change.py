"""Change of one file: its state before and after. How it is applied is left to the store."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kaiza.domain.paths.rel_path import RelPath

USUAL_MODE = 0o644
"""Mode of a new file under the usual umask. Records name any other."""
OperationKind = Literal["create", "modify", "delete", "move"]


@dataclass(frozen=True, slots=True)
class Change:
    """A file created, modified, deleted or moved. `mode` None keeps the file's mode, or a new file's default."""

    path: RelPath
    operation: OperationKind
    before_hash: str | None = None
    after_hash: str | None = None
    size: int = 0
    lines_added: int = 0
    lines_removed: int = 0
    mode: int | None = None
    source: RelPath | None = None
    content: bytes | None = field(default=None, repr=False)
    """The new bytes. None if the blob store has them under `after_hash`, or for a delete or a plain move."""

    stat_signature: tuple[int, ...] | None = field(default=None, repr=False, compare=False)
    """Stat fields of the file that `before_hash` was computed from; while they are equal the hash is not recomputed."""

    @property
    def touched_paths(self) -> tuple[RelPath, ...]:
        """Every path the change alters: for a move the source, then the target."""
        return (self.path,) if self.source is None else (self.source, self.path)

    @property
    def is_plain_move(self) -> bool:
        """Whether this is a move that leaves the content as it is."""
        return self.operation == "move" and self.content is None and self.after_hash in {None, self.before_hash}

    def as_record(self) -> Mapping[str, Any]:
        """The entry for a record's `changes`. Never includes content."""
        return {
            "path": str(self.path),
            "source": None if self.source is None else str(self.source),
            "operation": self.operation,
            "before_hash": self.before_hash,
            "after_hash": self.after_hash,
            "size": self.size,
            "lines_added": self.lines_added,
            "lines_removed": self.lines_removed,
            "mode": self.mode,
        }


def bytes_written(change: Mapping[str, Any]) -> int:
    """Number of bytes that a recorded change writes; 0 for a delete and for a plain move."""
    after_hash = change["after_hash"]
    is_edited_move = change["operation"] == "move" and after_hash not in (None, change["before_hash"])
    return change["size"] if is_edited_move or change["operation"] in ("create", "modify") else 0
