"""One call on its way through the boundary, and the services that all calls share."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kaiza.boundary.clock import Clock
from kaiza.domain.audit import redaction
from kaiza.domain.audit.projection import Session
from kaiza.domain.call import CallRequest
from kaiza.domain.caps import Caps
from kaiza.domain.client_limits import limit_for_client
from kaiza.domain.tool_card import ToolOffer
from kaiza.store.workspace import Workspace

PROGRESS_PER_SECOND = 5


@dataclass(slots=True)
class Call:
    """A request with its id, time and deadline. Its handler and the deadline compete for it; see `claim`."""

    call_request: CallRequest
    request_id: str
    timestamp: str
    """The time in the record. Decisions use the real clock."""
    started: float
    deadline: float
    arguments: Mapping[str, Any]
    """The arguments; empty where they are not an object."""
    workspace: Workspace | None = None
    session: Session | None = None
    unread: Mapping[str, int] | None = None
    """Progress of reading the log, if no session was found but the log was not read in time."""
    plan_id: str | None = None
    last_seen_seq: int = 0
    """Sequence number of the last record before the tool ran."""
    detail: dict[str, Any] = field(default_factory=dict)
    """The `detail` member of the outcome's record."""
    _redacted_arguments: Any = None
    _claim_lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def redacted_arguments(self) -> Any:
        """The arguments as the log stores them."""
        # Computed once: the intent and the outcome of a change both record them.
        if self._redacted_arguments is None:
            self._redacted_arguments = redaction.redact_arguments(self.call_request.arguments)
        return self._redacted_arguments

    @property
    def principal_label(self) -> str | None:
        """Label of the principal, as in records; None on stdio."""
        principal = self.call_request.principal
        return principal.label if principal else None

    @property
    def is_claimed(self) -> bool:
        """Whether the call is answered, or is about to be."""
        return self._claim_lock.locked()

    def claim(self) -> bool:
        """Take the right to answer: True for exactly one caller, once."""
        # Never released. A worker that ends after its deadline gets False and throws its result away.
        return self._claim_lock.acquire(blocking=False)


@dataclass(frozen=True, slots=True)
class Services:
    """Workspaces, caps and settings of this process, shared by all calls."""

    workspaces: Mapping[str, Workspace]
    caps: Caps
    offer: ToolOffer
    server_info: Mapping[str, Any]
    clock: Clock
    own_sessions: set[str]
    """Ids of the open sessions that this process began."""


def stamp_call(call_request: CallRequest, seconds: float, clock: Clock) -> Call:
    """Give a request its id, its time and its deadline."""
    started = time.monotonic()
    request_id, timestamp = clock.stamp(call_request)
    arguments = call_request.arguments if isinstance(call_request.arguments, Mapping) else {}
    trace = {"traceparent": call_request.traceparent} if call_request.traceparent else {}
    return Call(call_request, request_id, timestamp, started, started + seconds, arguments, detail=trace)


def limit_answer(call: Call, caps: Caps) -> Caps:
    """The caps with the size of this call's answer."""
    # A client without a handshake may name itself in each request, or in the first one only.
    client = call.call_request.client or (call.session.client if call.session else None)
    configured = call.workspace.settings.answer_bytes if call.workspace else caps.answer_bytes
    return caps._replace(answer_bytes=limit_for_client(configured, client))


class ProgressReporter:
    """Reports the progress of one call to the client, until the call is answered. Never fails the call."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._send = call.call_request.report_progress
        self._last_done = -1
        self._second_ends = 0.0
        self._left = 0

    def report(self, done: int, total: int | None, /) -> None:
        """Report how many items of how many are processed."""
        if self._send is None or done <= self._last_done or self._call.is_claimed:
            return
        # A few times a second; what is reported beyond that is dropped.
        now = time.monotonic()
        if now >= self._second_ends:
            self._second_ends, self._left = now + 1, PROGRESS_PER_SECOND
        self._left -= 1
        if self._left < 0:
            return
        self._last_done = done
        try:
            self._send(done, total)
        except Exception:  # noqa: BLE001  the transport is broken; the tool must not fail because of it
            self._send = None
