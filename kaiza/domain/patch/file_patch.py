"""Parsed patch of one file. That one exists proves that it is well-formed; it may still not fit the file."""

from dataclasses import dataclass
from typing import Literal

from kaiza.domain.paths.rel_path import RelPath

MAX_FILES = 200
MAX_HUNKS = 20_000
MAX_BYTES = 512 * 1024

PatchOperation = Literal["create", "modify", "delete", "move"]


@dataclass(frozen=True, slots=True)
class Hunk:
    """Old lines of a file and the new lines that replace them, each with its LF if it has one."""

    line: int
    """Line of its header in the patch, from 0."""
    start: int
    """First line of the old file that it covers, from 0."""
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    context: int
    """Number of context lines, which are in both `old` and `new`."""
    ends_file: bool
    """It must reach the end of the file, because no context after its change ties it to another place."""

    @property
    def lines_added(self) -> int:
        """Number of added lines."""
        return len(self.new) - self.context

    @property
    def lines_removed(self) -> int:
        """Number of removed lines."""
        return len(self.old) - self.context


@dataclass(frozen=True, slots=True)
class FilePatch:
    """Entry of one file in a patch. `source` is the old path of a moved file; modes are permission bits."""

    path: RelPath
    operation: PatchOperation
    source: RelPath | None = None
    old_mode: int | None = None
    new_mode: int | None = None
    hunks: tuple[Hunk, ...] = ()
    line: int = 0
    """Line where its header begins in the patch, from 0."""

    @property
    def lines_added(self) -> int:
        """Number of added lines."""
        return sum(hunk.lines_added for hunk in self.hunks)

    @property
    def lines_removed(self) -> int:
        """Number of removed lines."""
        return sum(hunk.lines_removed for hunk in self.hunks)
