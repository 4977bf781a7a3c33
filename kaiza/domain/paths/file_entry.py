"""What is at one name of a directory, as a stat found it."""

from dataclasses import dataclass
from typing import Literal

from kaiza.domain.paths.rel_path import RelPath

FileKind = Literal["file", "directory", "link", "other"]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file, directory, link or something else; only a file has a size."""

    name: str
    type: FileKind
    size: int | None
    modified: str
    mode: int
    real: RelPath
    """Where it really is, with all links followed."""
