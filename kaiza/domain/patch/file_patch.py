"""What a patch says about one file, after every rule that needs no file has agreed."""

from dataclasses import dataclass
from typing import Literal

from kaiza.domain.paths.rel_path import RelPath

MAX_FILES = 200
MAX_HUNKS = 20_000
MAX_BYTES = 512 * 1024

PatchOperation = Literal["create", "modify", "delete", "move"]


@dataclass(frozen=True, slots=True)
class Hunk:
    """Some lines of a file, and what stands in their place afterwards; each line with its line feed, if it has one."""

    line: int
    """Where its header stands in the patch, from 0."""
    start: int
    """The first line of the file that it covers, from 0."""
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    context: int
    ends_file: bool
    """Nothing after the change holds it in place, so it must reach the end of the file."""

    @property
    def lines_added(self) -> int:
        """How many lines it adds."""
        return len(self.new) - self.context

    @property
    def lines_removed(self) -> int:
        """How many lines it removes."""
        return len(self.old) - self.context


@dataclass(frozen=True, slots=True)
class FilePatch:
    """One file's entry in a patch. `source` is where a moved file comes from; modes are permission bits."""

    path: RelPath
    operation: PatchOperation
    source: RelPath | None = None
    old_mode: int | None = None
    new_mode: int | None = None
    hunks: tuple[Hunk, ...] = ()
    line: int = 0
    """Where its header begins in the patch, from 0."""

    @property
    def lines_added(self) -> int:
        """How many lines it adds."""
        return sum(hunk.lines_added for hunk in self.hunks)

    @property
    def lines_removed(self) -> int:
        """How many lines it removes."""
        return sum(hunk.lines_removed for hunk in self.hunks)
