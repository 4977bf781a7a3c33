"""Finds out whether a file with several names (hard links) has one below the root that may not be read.

A file with one name costs nothing. For any other the tree is walked for names, and the result is used until it may be
outdated. A walk has a time limit, and starts at the root, where secrets usually are; what it does not reach is unknown.
"""

import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import ROOT, RelPath
from kaiza.store.files.confined_root import ConfinedRoot

MAX_SECONDS = 2.0
MAX_AGE_SECONDS = 60.0
"""After this time the tree is walked again: a directory above a name may have been renamed."""
_TICK_NS = 20_000_000


class _Found(NamedTuple):
    begun_ns: int
    until: float
    inodes: frozenset[tuple[int, int]]


class LinkedSecrets:
    """Files with several names of which at least one is unreadable, as the last walk found them."""

    def __init__(self, root: ConfinedRoot, is_unreadable: Callable[[RelPath], bool]) -> None:
        self._root = root
        self._is_unreadable = is_unreadable
        self._found = _Found(0, 0.0, frozenset())

    def has_secret_name(self, status: os.stat_result) -> bool:
        """Whether an open file has a name below the root that may not be read."""
        if status.st_nlink < 2 or not status.st_size:  # noqa: PLR2004  one name is the one it was opened by
            return False  # of an empty file there is nothing to read, and package managers link all that they install
        found = self._found
        # The file may have got a name since the walk. One that changes in the future says nothing.
        is_newer = found.begun_ns - _TICK_NS < status.st_ctime_ns <= time.time_ns()
        if is_newer or time.monotonic() > found.until:
            found = self._found = self._search()
        return (status.st_dev, status.st_ino) in found.inodes

    def _search(self) -> _Found:
        begun_ns, begun = time.time_ns(), time.monotonic()
        inodes = set[tuple[int, int]]()
        pending = deque([ROOT])
        while pending and time.monotonic() < begun + MAX_SECONDS:
            directory = pending.popleft()
            for name, status in self._list_directory(directory):
                if stat.S_ISDIR(status.st_mode):
                    pending.append(directory / name)
                elif status.st_nlink > 1 and stat.S_ISREG(status.st_mode) and self._is_unreadable(directory / name):
                    inodes.add((status.st_dev, status.st_ino))
        return _Found(begun_ns, time.monotonic() + MAX_AGE_SECONDS, frozenset(inodes))

    def _list_directory(self, path: RelPath) -> Iterator[tuple[str, os.stat_result]]:
        try:
            with self._root.open_directory(path, lambda _real: None) as directory, os.scandir(directory.fd) as entries:
                for entry in entries:
                    yield entry.name, entry.stat(follow_symlinks=False)
        except (OSError, errors.SystemError):  # gone since its parent was listed, or it cannot be listed
            return
