"""The sorted names of one large directory, remembered as long as the directory has not changed: for its next page."""

import os
import time
from collections.abc import Sequence

LEAST = 1_000
MOST = 100_000
SETTLED_NS = 2_000_000_000
"""A directory that changed more recently than this might change again without its time telling."""

_Stamp = tuple[int, int, int, int]


class Listings:
    """What was listed last. Kept for one directory only, so that it stays small."""

    def __init__(self) -> None:
        self._kept: tuple[_Stamp, Sequence[str]] | None = None

    def names(self, fd: int) -> Sequence[str]:
        """Everything that stands in a directory, sorted; nothing of it is looked at."""
        begun = time.time_ns()
        stamp = _stamp(os.fstat(fd))
        kept = self._kept
        if kept is not None and kept[0] == stamp:
            return kept[1]
        names = sorted(os.listdir(fd))
        if LEAST <= len(names) <= MOST and max(stamp[2:]) < begun - SETTLED_NS:
            self._kept = (stamp, names)
        return names


def _stamp(found: os.stat_result) -> _Stamp:
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns
