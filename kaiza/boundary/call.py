"""A call on its way through the boundary, and what every call finds in place."""

import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from kaiza.domain.audit import redaction
from kaiza.domain.audit.projection import Session
from kaiza.domain.call import CallRequest
from kaiza.domain.caps import Caps
from kaiza.store.workspace import Workspace


@dataclass(slots=True)
class Call:
    """A stamped ask. Whoever takes it first answers it: its handler, or the clock that ran out."""

    call_request: CallRequest
    request_id: str
    timestamp: str
    started: float
    deadline: float
    arguments: Mapping[str, Any]
    """The arguments where they are an object, else nothing."""
    workspace: Workspace | None = None
    session: Session | None = None
    plan_id: str | None = None
    last_seen_seq: int = 0
    """The last record that was known before the call's tool ran."""
    detail: dict[str, Any] = field(default_factory=dict)
    """What the outcome's record tells beside the rest."""
    _redacted_arguments: Any = None
    _claim_lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def redacted_arguments(self) -> Any:
        """The arguments as the record tells them."""
        if self._redacted_arguments is None:
            self._redacted_arguments = redaction.redact_arguments(self.call_request.arguments)
        return self._redacted_arguments

    def claim(self) -> bool:
        """True for exactly one caller, once."""
        return self._claim_lock.acquire(blocking=False)


@dataclass(frozen=True, slots=True)
class Services:
    """What every call finds in place."""

    workspaces: Mapping[str, Workspace]
    caps: Caps
    bound_role: str | None
    server_info: Mapping[str, Any]
    own_sessions: set[str]
    """The sessions that this process began."""


def current_timestamp() -> str:
    """The time as records tell it."""
    milliseconds = time.time_ns() // 1_000_000
    return f"{_format_second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"


@lru_cache(maxsize=2)
def _format_second(since_epoch: int) -> str:
    return datetime.fromtimestamp(since_epoch, UTC).isoformat()[:19]


def stamp_call(ask: CallRequest, seconds: float) -> Call:
    """Give a call its id, its time and its deadline."""
    started = time.monotonic()
    arguments = ask.arguments if isinstance(ask.arguments, Mapping) else {}
    return Call(ask, str(uuid.uuid4()), current_timestamp(), started, started + seconds, arguments)
