"""Source directories of a cache: opening those that a person names, and scanning them."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from kaiza.cli.console import output
from kaiza.domain.context import cache_format
from kaiza.domain.context.cache_format import CacheEntry
from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.rel_path import ROOT, RelPath
from kaiza.render.terminal import escape
from kaiza.store.context.source_scan import CacheBuildError, LeftOut, Source, SourceDocument, scan_source
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.workspace import Workspace

DEFAULT_GLOB = "**/*.md"


@dataclass(frozen=True, slots=True)
class SourceSet:
    """The sources of one cache: directories as real paths, and the glob that documents match."""

    directories: Sequence[str]
    glob: str = DEFAULT_GLOB

    def scan(self, workspace: Workspace) -> Iterator[SourceDocument | LeftOut]:
        """The documents of all sources, and what is left out."""
        with ExitStack() as opened:
            for directory in self.directories:
                source = _open_source(workspace, directory, opened)
                glob = Glob.parse(self.glob)
                yield from scan_source(source, glob, workspace.is_unreadable, workspace.is_linked_secret)

    def is_changed(self, workspace: Workspace, cache_version: str) -> bool:
        """Whether a cache built now would have another version, or could not be built."""
        try:
            entries = [
                CacheEntry(found.document_id, cache_format.hash_content(found.content))
                for found in self.scan(workspace)
                if isinstance(found, SourceDocument)
            ]
        except (CacheBuildError, output.CommandError):
            return True
        return cache_format.hash_entries(entries) != cache_version


def resolve_sources(root: str, named: Sequence[str], *, is_outside_allowed: bool) -> list[str]:
    """Real paths of the directories a person named; a CommandError for one outside that was not allowed."""
    directories = [os.path.realpath(each) for each in named]
    for directory, name in zip(directories, named, strict=True):
        if not os.path.isdir(directory):  # noqa: PTH112  a name may hold any bytes
            raise output.CommandError(f"There is no directory {escape(name)}. Name one with --source.")
        if f"{root}/".startswith(f"{directory.rstrip('/')}/") and directory != root:
            raise output.CommandError(
                f"{escape(name)} contains the workspace. Name directories inside or beside it.", output.FAILURE
            )
        if not is_outside_allowed and _relative_path(root, directory) is None:
            raise output.CommandError(
                f"{escape(name)} is outside the workspace. To allow it, add --outside.", output.FAILURE
            )
    return list(dict.fromkeys(directories))


def label_source(root: str, directory: str) -> str:
    """The directory as records and people see it: relative to the workspace if it is inside."""
    relative = _relative_path(root, directory)
    return directory if relative is None else str(relative)


def pack_documents(found: Iterator[SourceDocument | LeftOut], pack: Callable[[SourceDocument], None]) -> list[LeftOut]:
    """Pack each document; return what is left out."""
    left_out = []
    for each in found:
        if isinstance(each, LeftOut):
            left_out.append(each)
        else:
            pack(each)
    return left_out


def _open_source(workspace: Workspace, directory: str, opened: ExitStack) -> Source:
    relative = _relative_path(workspace.root, directory)
    if relative is not None:
        return Source(workspace.files, relative, "" if relative == ROOT else str(relative))
    return Source(opened.enter_context(ConfinedRoot(directory)), ROOT, directory)


def _relative_path(root: str, directory: str) -> RelPath | None:
    """The path below the root; None if it is outside."""
    if directory == root:
        return ROOT
    prefix = root.rstrip("/") + "/"
    return RelPath.from_bytes(os.fsencode(directory[len(prefix) :])) if directory.startswith(prefix) else None
