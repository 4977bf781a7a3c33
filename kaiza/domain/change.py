"""One change to one file: what was there, what will be there, and nothing about how it gets there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kaiza.domain.paths.rel_path import RelPath

OperationKind = Literal["create", "modify", "delete", "move"]


@dataclass(frozen=True, slots=True)
class Change:
    """A file created, modified, deleted or moved; `mode` None keeps what is there, or takes what new files get."""

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
    """The new bytes. None: they are kept under `after_hash`, or the change needs none (delete, plain move)."""

    stat_signature: tuple[int, ...] | None = field(default=None, repr=False, compare=False)
    """What `before_hash` was read from, as the system knows it: while that is the same, so is the hash."""

    @property
    def touched_paths(self) -> tuple[RelPath, ...]:
        """Every path the change alters."""
        return (self.path,) if self.source is None else (self.source, self.path)

    @property
    def is_plain_move(self) -> bool:
        """Whether a move leaves every byte as it is."""
        return self.operation == "move" and self.content is None and self.after_hash in {None, self.before_hash}

    def as_record(self) -> Mapping[str, Any]:
        """The change as a record's `changes` lists it: never its content."""
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
    """How many bytes a change, as a record lists it, writes: its size wherever content is written."""
    after = change["after_hash"]
    rewritten = change["operation"] == "move" and after is not None and after != change["before_hash"]
    return change["size"] if rewritten or change["operation"] in ("create", "modify") else 0
