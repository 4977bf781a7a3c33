"""Removes, in small steps, what earlier processes and versions left in `.kaiza`. What was set aside stays: evidence."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice

from kaiza.store.changes.journal import JournalStore
from kaiza.store.disk import process_liveness

FILES_PER_STEP = 100
"""Files that one step looks at, in a few milliseconds."""


class Housekeeping:
    """One pass over a workspace's `.kaiza`, for a thread of its own."""

    def __init__(self, journals: JournalStore, is_allowed: Callable[[], bool]) -> None:
        self._journals = journals
        self._is_allowed = is_allowed
        self._pass = self._look_at_files()

    def step(self) -> None:
        """Look at the next files; nothing once all of them have been looked at."""
        if not self._is_allowed():
            return
        with suppress(OSError):  # then the next process continues
            for _ in islice(self._pass, FILES_PER_STEP):
                pass

    def _look_at_files(self) -> Iterator[None]:
        yield from self._journals.remove_unneeded()
        yield from process_liveness.remove_dead(self._journals.kaiza_dir)
