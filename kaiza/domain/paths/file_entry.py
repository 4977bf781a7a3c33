"""Directory entry: name, type, size and mode of one file, as read by stat."""

from dataclasses import dataclass
from typing import Literal

from kaiza.domain.paths.rel_path import RelPath

FileKind = Literal["file", "directory", "link", "other"]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One directory entry. Only a file has a size."""

    name: str
    type: FileKind
    size: int | None
    modified: str
    mode: int
    real: RelPath
    """The resolved path, with all links followed."""
