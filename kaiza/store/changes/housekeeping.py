"""Removes, in small steps, what ended processes left in `.kaiza/live`."""

from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from kaiza.store.disk import process_liveness
from kaiza.store.disk.kaiza_dir import KaizaDir

FILES_PER_STEP = 100
"""Files that one step looks at, in a few milliseconds."""


class Housekeeping:
    """One pass over a workspace's liveness files, for a thread of its own."""

    def __init__(self, kaiza_dir: KaizaDir, is_allowed: Callable[[], bool]) -> None:
        self._is_allowed = is_allowed
        self._pass = process_liveness.remove_dead(kaiza_dir)

    def step(self) -> None:
        """Look at the next files; nothing once all of them have been looked at."""
        if not self._is_allowed():
            return
        with suppress(OSError):  # then the next process continues
            for _ in islice(self._pass, FILES_PER_STEP):
                pass
