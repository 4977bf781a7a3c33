"""Finds the documents below a source directory. No link is followed, and files that may not be read are left out."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kaiza.domain import errors
from kaiza.domain.caps import MIB
from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.rel_path import ROOT, RelPath
from kaiza.store.files import tree_walk
from kaiza.store.files.confined_root import ConfinedRoot

MAX_BYTES = MIB
"""Bytes of one document."""
UNREADABLE, IGNORED, LINK = "unreadable", "ignored by .gitignore", "not a regular file"
"""Why a file is left out."""


class CacheBuildError(Exception):
    """Why a cache cannot be built or removed, as a sentence for the person."""


@dataclass(frozen=True, slots=True)
class Source:
    """A directory whose documents are packed."""

    files: ConfinedRoot
    start: RelPath
    """The directory, below the root of `files`."""
    label: str
    """The directory as people see it."""


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """One document of a source."""

    name: str
    """Its path, relative to the source."""
    path: str
    """The path as people see it."""
    content: bytes

    @property
    def document_id(self) -> str:
        """Its id in a cache."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A matching file that is not packed, and why."""

    path: str
    why: str


def scan_source(
    source: Source, glob: Glob, is_unreadable: Callable[[RelPath], bool], is_linked_secret: tree_walk.FileCheck
) -> Iterator[SourceDocument | LeftOut]:
    """The documents of a source, in the order of paths; CacheBuildError for one that cannot be packed."""
    not_ignored = {entry.path for entry in _walk_matches(source, glob, include_ignored=False)}
    for entry in _walk_matches(source, glob, include_ignored=True):
        relative = _relative_name(source, entry.path)
        shown = os.path.join(source.label, relative)  # noqa: PTH118  a name may hold any bytes
        if is_unreadable(entry.real):
            yield LeftOut(shown, UNREADABLE)
        elif entry.path not in not_ignored:
            yield LeftOut(shown, IGNORED)
        elif entry.type != "file":
            yield LeftOut(shown, LINK)
        else:
            content = _read_document(source, entry.real, shown, is_linked_secret)
            yield LeftOut(shown, UNREADABLE) if content is None else SourceDocument(relative, shown, content)


def _walk_matches(source: Source, glob: Glob, *, include_ignored: bool) -> Iterator[tree_walk.WalkedEntry]:
    with tree_walk.TreeWalk(source.files, source.start, include_ignored=include_ignored, over=lambda: False) as entries:
        for entry in entries:
            if entry.type != "directory" and glob.matches_text(_relative_name(source, entry.path)):
                yield entry
        if entries.unlisted_count and not include_ignored:
            raise CacheBuildError(f"A directory in {source.label} could not be listed. Check its permissions.")


def _relative_name(source: Source, path: str) -> str:
    return path if source.start == ROOT else path.removeprefix(f"{source.start}/")


def _read_document(source: Source, real: RelPath, shown: str, is_linked_secret: tree_walk.FileCheck) -> bytes | None:
    """Content of a document; None if another name of the file may not be read."""

    def require_same(found: RelPath) -> None:
        if found != real:  # a directory above it was replaced by a link since it was listed
            raise CacheBuildError(f"{shown} was replaced while it was read. Build again.")

    try:
        with source.files.open_file(real, require_same) as file:
            if is_linked_secret(real, file.status):
                return None
            content = b"".join(file.chunks()) if file.size <= MAX_BYTES else b""
    except errors.SystemError as error:
        raise CacheBuildError(f"{shown} could not be read. Check its permissions, or leave it out.") from error
    if file.size > MAX_BYTES or len(content) > MAX_BYTES:
        raise CacheBuildError(f"{shown} is larger than 1 MiB. Split it, or leave it out.")
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise CacheBuildError(f"{shown} is not UTF-8. Convert it, or leave it out.") from error
    return content
