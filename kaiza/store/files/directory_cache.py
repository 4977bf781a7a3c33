"""Cache of one large directory's sorted names: the next page of a listing does not list and sort it again."""

import heapq
import os
import time
from bisect import bisect_right
from collections.abc import Sequence

MIN_NAMES = 1_000
MAX_NAMES = 100_000
SECOND_NS = 1_000_000_000
# A directory that changed more recently is not cached: another change could leave it with the same times.
MIN_AGE_NS = SECOND_NS // 10

_DirectoryStamp = tuple[int, int, int, int]


class DirectoryCache:
    """Names of the directory that was listed last, valid while its identity and times are unchanged."""

    def __init__(self) -> None:
        self._cached: tuple[_DirectoryStamp, Sequence[str]] | None = None

    def names_after(self, fd: int, name: str, most: int) -> Sequence[str]:
        """At most `most` names in sorted order, those after `name`; no entry is read."""
        # Both before the listing: a change during it leaves the cache with an outdated stamp, and so unused.
        now = time.time_ns()
        stamp = _directory_stamp(os.fstat(fd))
        cached = self._cached
        if cached is None or cached[0] != stamp:
            names = os.listdir(fd)
            if not MIN_NAMES <= len(names) <= MAX_NAMES or _has_just_changed(stamp, now):
                return heapq.nsmallest(most, (each for each in names if each > name) if name else names)
            cached = self._cached = (stamp, sorted(names))
        start = bisect_right(cached[1], name)
        return cached[1][start : start + most]


def _directory_stamp(status: os.stat_result) -> _DirectoryStamp:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def _has_just_changed(stamp: _DirectoryStamp, now: int) -> bool:
    changed_at = max(stamp[2:])
    # Whole seconds hint at a file system that keeps no fractions: its times change only every second or two.
    return changed_at > now - (MIN_AGE_NS if changed_at % SECOND_NS else 3 * SECOND_NS)
