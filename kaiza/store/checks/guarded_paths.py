"""Finds the paths of a workspace that a check must not write or read: files that govern the agent, and secrets."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
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
    """Changes if the entry is replaced, or if its directory is; of a link also if it is made anew."""


def find_guarded(
    root: str, is_governing: Callable[[RelPath], bool], is_unreadable: Callable[[RelPath], bool]
) -> Iterator[GuardedPath]:
    """Find guarded paths, outermost first. Below one that governs only secrets are named, below a secret nothing.

    OSError if the root cannot be listed.
    """
    pending = [(ROOT, False)]
    while pending:
        parent, is_governed = pending.pop()
        try:
            entries = _list_directory(root, parent)
        except OSError as refused:
            if not parent.parts:
                raise
            yield from _guard_unlistable(root, parent, not is_governed, refused)
            continue
        for entry in entries:
            path = parent / entry.name
            governs = not is_governed and is_governing(path)
            is_secret = is_unreadable(path)
            is_directory = entry.is_dir(follow_symlinks=False)
            if governs or is_secret:
                yield from _guard(root, path, governs, is_secret)
            if is_directory and not is_secret and not _is_object_store(path):
                pending.append((path, is_governed or governs))


def _list_directory(root: str, directory: RelPath) -> list["os.DirEntry[str]"]:
    path = _path_of(root, directory)
    # Without the right to search it, its entries can be listed, but not examined.
    os.stat(f"{path}/.")  # noqa: PTH116  names may be odd
    with os.scandir(path) as entries:
        return list(entries)


def _guard_unlistable(root: str, path: RelPath, governs: bool, refused: OSError) -> Iterator[GuardedPath]:  # noqa: FBT001
    """A directory that cannot be listed is guarded as a whole: what is in it can still be opened by name."""
    if refused.errno == errno.ENAMETOOLONG:
        yield GuardedPath(path, governs, True, True, None, ())
    elif not isinstance(refused, FileNotFoundError | NotADirectoryError):  # removed since its parent was listed
        yield from _guard(root, path, governs, is_secret=True)


def _guard(root: str, path: RelPath, governs: bool, is_secret: bool) -> Iterator[GuardedPath]:  # noqa: FBT001
    """The guarded path; nothing if it was removed since it was listed."""
    place = _path_of(root, path)
    with suppress(FileNotFoundError):
        status, parent = os.lstat(place), os.lstat(_path_of(root, path.parent))
        identity: tuple[int, ...] = (status.st_dev, status.st_ino, parent.st_dev, parent.st_ino)
        target = None
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(place)  # noqa: PTH115  names may be odd
            # No mount keeps a link, and the inode number of a removed one is used again for the next file.
            identity = (*identity, status.st_ctime_ns)
        yield GuardedPath(path, governs, is_secret, stat.S_ISDIR(status.st_mode), target, identity)


def _path_of(root: str, path: RelPath) -> str:
    return f"{root}/{path}" if path.parts else root


def _is_object_store(path: RelPath) -> bool:
    """Whether these are git's objects: many files, named by their hashes."""
    return path.parts[-2:] == (".git", "objects")
