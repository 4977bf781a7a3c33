"""Cache of answers for a few seconds, so that not every call starts a process."""

import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

SECONDS = 10.0
_MAX_ENTRIES = 256
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TimedCache(Generic[K, V]):
    """Answers by key, each kept for SECONDS. The oldest are dropped first."""

    def __init__(self) -> None:
        self._entries: dict[K, tuple[float, V]] = {}

    def get(self, key: K, compute: Callable[[], V]) -> V:
        """The answer for a key, computed unless a recent one is known."""
        known = self._entries.get(key)
        if known is not None and time.monotonic() < known[0]:
            return known[1]
        answer = compute()
        # A new dictionary: other threads may be reading this one.
        kept = list(self._entries.items())[1 - _MAX_ENTRIES :]
        self._entries = {**dict(kept), key: (time.monotonic() + SECONDS, answer)}
        return answer
