"""A call on its way through the boundary, and what every call finds in place."""

import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from kaiza.domain import told
from kaiza.domain.call import Ask
from kaiza.domain.caps import Caps
from kaiza.domain.session import Session
from kaiza.store.ground import Ground


@dataclass(slots=True)
class Call:
    """A stamped ask. Whoever takes it first answers it: its handler, or the clock that ran out."""

    ask: Ask
    request_id: str
    timestamp: str
    started: float
    deadline: float
    arguments: Mapping[str, Any]
    """The arguments where they are an object, else nothing."""
    ground: Ground | None = None
    session: Session | None = None
    plan_id: str | None = None
    seen_seq: int = 0
    """The last record that was known before the call's tool ran."""
    detail: dict[str, Any] = field(default_factory=dict)
    """What the outcome's record tells beside the rest."""
    _told: Any = None
    _taken: threading.Lock = field(default_factory=threading.Lock)

    @property
    def told(self) -> Any:
        """The arguments as the record tells them."""
        if self._told is None:
            self._told = told.arguments(self.ask.arguments)
        return self._told

    def take(self) -> bool:
        """True for exactly one caller, once."""
        return self._taken.acquire(blocking=False)


@dataclass(frozen=True, slots=True)
class House:
    """What every call finds in place."""

    grounds: Mapping[str, Ground]
    caps: Caps
    bound_role: str | None
    server: Mapping[str, Any]
    begun: set[str]
    """The sessions that this process began."""


def now() -> str:
    """The time as records tell it."""
    milliseconds = time.time_ns() // 1_000_000
    return f"{_second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"


@lru_cache(maxsize=2)
def _second(since_epoch: int) -> str:
    return datetime.fromtimestamp(since_epoch, UTC).isoformat()[:19]


def stamp(ask: Ask, seconds: float) -> Call:
    """Give a call its id, its time and its deadline."""
    started = time.monotonic()
    arguments = ask.arguments if isinstance(ask.arguments, Mapping) else {}
    return Call(ask, str(uuid.uuid4()), now(), started, started + seconds, arguments)
