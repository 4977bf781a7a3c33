"""The sorted names of one large directory, remembered as long as the directory has not changed: for its next page."""

import heapq
import os
import time
from bisect import bisect_right
from collections.abc import Sequence

MIN_NAMES = 1_000
MAX_NAMES = 100_000
SECOND_NS = 1_000_000_000
MIN_AGE_NS = SECOND_NS // 10
"""A directory that changed more recently than this might change again without its time telling."""

_DirectoryStamp = tuple[int, int, int, int]


class DirectoryCache:
    """What was listed last. Kept for one directory only, so that it stays small."""

    def __init__(self) -> None:
        self._cached: tuple[_DirectoryStamp, Sequence[str]] | None = None

    def names_after(self, fd: int, name: str, most: int) -> Sequence[str]:
        """The first names after one, in order, at most so many; nothing of them is looked at."""
        begun = time.time_ns()
        stamp = _directory_stamp(os.fstat(fd))
        kept = self._cached
        if kept is None or kept[0] != stamp:
            names = os.listdir(fd)
            if not MIN_NAMES <= len(names) <= MAX_NAMES or _has_just_changed(stamp, begun):
                return heapq.nsmallest(most, (one for one in names if one > name) if name else names)
            kept = self._cached = (stamp, sorted(names))
        begin = bisect_right(kept[1], name)
        return kept[1][begin : begin + most]


def _directory_stamp(found: os.stat_result) -> _DirectoryStamp:
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _has_just_changed(stamp: _DirectoryStamp, now: int) -> bool:
    """Whether another change could leave the same times; where they are whole seconds, clocks are coarse."""
    changed = max(stamp[2:])
    return changed > now - (MIN_AGE_NS if changed % SECOND_NS else 3 * SECOND_NS)
