"""Finds the paths of a workspace that a check must not write or read: files that govern the agent, and secrets."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kaiza.domain.paths.rel_path import ROOT, RelPath


@dataclass(frozen=True, slots=True)
class GuardedPath:
    """A path that a check must not write (`governs`), or not read (`is_secret`)."""

    path: RelPath
    governs: bool
    is_secret: bool
    is_directory: bool
    link_target: str | None
    """Where it leads to; None if it is no link."""
    identity: tuple[int, ...]
    """Changes if the entry is replaced, or if its directory is."""


def find_guarded(
    root: str, is_governing: Callable[[RelPath], bool], is_unreadable: Callable[[RelPath], bool]
) -> Iterator[GuardedPath]:
    """Find guarded paths, outermost first. Below one that governs only secrets are named, below a secret nothing."""
    pending = [(ROOT, False)]
    while pending:
        parent, is_governed = pending.pop()
        for entry, parent_stat in _list_directory(root, parent):
            path = parent / entry.name
            governs = not is_governed and is_governing(path)
            is_secret = is_unreadable(path)
            is_directory = entry.is_dir(follow_symlinks=False)
            if governs or is_secret:
                target = os.readlink(entry.path) if entry.is_symlink() else None  # noqa: PTH115  names may be odd
                yield GuardedPath(path, governs, is_secret, is_directory, target, _identify(entry, parent_stat))
            if is_directory and not is_secret and not _is_object_store(path):
                pending.append((path, is_governed or governs))


def _list_directory(root: str, parent: RelPath) -> Iterator[tuple["os.DirEntry[str]", os.stat_result]]:
    directory = f"{root}/{parent}" if parent.parts else root
    try:
        status = os.stat(directory, follow_symlinks=False)  # noqa: PTH116  names may be odd
        with os.scandir(directory) as entries:
            found = list(entries)
    except OSError:
        return  # removed since it was listed, or not readable, so that the check cannot read it either
    for entry in found:
        yield entry, status


def _is_object_store(path: RelPath) -> bool:
    """Whether these are git's objects: many files, named by their hashes."""
    return path.parts[-2:] == (".git", "objects")


def _identify(entry: "os.DirEntry[str]", parent: os.stat_result) -> tuple[int, ...]:
    status = entry.stat(follow_symlinks=False)
    return status.st_dev, status.st_ino, parent.st_dev, parent.st_ino
