"""Source directories of context caches: those that a person names, the documents in them, and whether these changed."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from kaiza.domain.context import cache_format
from kaiza.domain.context.cache_format import CacheEntry
from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.rel_path import ROOT, RelPath
from kaiza.domain.refusal import RefusedError, UndeterminedError
from kaiza.render.terminal import escape
from kaiza.store.audit.reader import read_records
from kaiza.store.context.source_scan import CacheBuildError, LeftOut, Source, SourceDocument, scan_source
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.workspace import Workspace

__all__ = ["LeftOut", "SourceSet", "find_build", "is_changed", "resolve_sources"]

BUILD_ACTION = "context_build"
"""The action that a build's record names."""


@dataclass(frozen=True, slots=True)
class SourceSet:
    """The sources of one cache: directories as real paths, and the glob that documents match."""

    directories: Sequence[str]
    glob: str

    def scan(self, workspace: Workspace) -> Iterator[SourceDocument | LeftOut]:
        """The documents of all sources, and what is left out; CacheBuildError for one that cannot be packed."""
        with ExitStack() as opened:
            for directory in self.directories:
                relative = _relative_path(workspace.root, directory)
                if relative is not None:
                    source = Source(workspace.files, relative, "" if relative == ROOT else str(relative))
                else:
                    source = Source(opened.enter_context(ConfinedRoot(directory)), ROOT, directory)
                yield from scan_source(
                    source, Glob.parse(self.glob), workspace.is_unreadable, workspace.is_linked_secret
                )

    def labels(self, root: str) -> list[str]:
        """The directories as records and people see them: relative to the workspace if they are inside."""
        relatives = [(_relative_path(root, directory), directory) for directory in self.directories]
        return [directory if relative is None else str(relative) for relative, directory in relatives]


def resolve_sources(root: str, named: Sequence[str], glob: str, *, is_outside_allowed: bool) -> SourceSet:
    """The directories that a person named. Refused for one that is outside and was not allowed."""
    directories = [os.path.realpath(each) for each in named]
    for directory, name in zip(directories, named, strict=True):
        if not os.path.isdir(directory):  # noqa: PTH112  a name may hold any bytes
            raise UndeterminedError(f"There is no directory {escape(name)}. Name one with --source.")
        if f"{root}/".startswith(f"{directory.rstrip('/')}/") and directory != root:
            raise RefusedError(f"{escape(name)} contains the workspace. Name directories inside or beside it.")
        if not is_outside_allowed and _relative_path(root, directory) is None:
            raise RefusedError(f"{escape(name)} is outside the workspace. To allow it, add --outside.")
    return SourceSet(list(dict.fromkeys(directories)), glob)


def find_build(workspace: Workspace, name: str, cache_version: str) -> Mapping[str, Any] | None:
    """What the record of this cache's build says; None if it was not built here."""
    wanted = {"action": BUILD_ACTION, "cache": name, "cache_version": cache_version}
    for record in read_records(workspace.root, reverse=True):
        # A build that came with the workspace could name any directory of this machine.
        if workspace.binding.is_foreign or record.seq <= workspace.binding.adopted_seq:
            return None
        if record.kind == "person" and wanted.items() <= record.detail.items():
            return record.detail
    return None


def is_changed(workspace: Workspace, built: Mapping[str, Any]) -> bool:
    """Whether a cache built now from the same sources would have another version, or could not be built."""
    directories = [os.path.join(workspace.root, each) for each in built["sources"]]  # noqa: PTH118  any bytes
    try:
        entries = [
            CacheEntry(found.document_id, cache_format.hash_content(found.content))
            for found in SourceSet(directories, built["glob"]).scan(workspace)
            if isinstance(found, SourceDocument)
        ]
    except CacheBuildError:
        return True
    return cache_format.hash_entries(entries) != str(built["cache_version"])


def _relative_path(root: str, directory: str) -> RelPath | None:
    """The path below the root; None if it is outside."""
    if directory == root:
        return ROOT
    prefix = root.rstrip("/") + "/"
    return RelPath.from_bytes(os.fsencode(directory[len(prefix) :])) if directory.startswith(prefix) else None
