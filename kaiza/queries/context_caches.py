"""The context caches of a workspace for people: what the context tools see, without a time limit."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kaiza.domain.caps import Caps
from kaiza.store.context.cache_files import ContextCaches
from kaiza.store.files.confined_root import ConfinedRoot


@dataclass(frozen=True)
class UntimedView(ContextCaches):
    """The caches as a context tool sees them."""

    caps: Caps = field(default_factory=Caps)

    def is_out_of_time(self) -> bool:
        """False: a person interrupts a command that takes too long."""
        return False


@contextmanager
def open_caches(root: str) -> Iterator[UntimedView]:
    """The caches of the workspace at a root."""
    with ConfinedRoot(root) as files:
        yield UntimedView(files.fd)
