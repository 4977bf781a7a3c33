"""Source of the times and ids in records. Decisions, such as whether a plan has expired, use the real clock."""

import json
import threading
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from kaiza.clock import current_timestamp
from kaiza.domain import errors
from kaiza.domain.audit import redaction
from kaiza.domain.audit.deterministic import counted_timestamp, derive_id
from kaiza.domain.audit.projection import Session
from kaiza.domain.call import CallRequest
from kaiza.store.workspace import Workspace


class Clock(Protocol):
    """Source of the times and ids in records."""

    def stamp(self, call_request: CallRequest) -> tuple[str, str]:
        """The request id of a call and its timestamp."""
        ...

    def new_session_id(self, request_id: str) -> str:
        """The id of the session that this call begins."""
        ...

    def note_use(self, session_id: str) -> None:
        """Remember that the session was used now."""
        ...

    def is_in_use(self, session: Session, idle_hours: int) -> bool:
        """Whether a session that is open in the log has been idle for at most this time."""
        ...


class SystemClock:
    """The real time, and random ids."""

    def stamp(self, _call_request: CallRequest) -> tuple[str, str]:
        """A random id, and the time now."""
        return str(uuid.uuid4()), current_timestamp()

    def new_session_id(self, _request_id: str) -> str:
        """A random id."""
        return str(uuid.uuid4())

    def note_use(self, session_id: str) -> None:
        """Do nothing: the log has the time of each call."""

    def is_in_use(self, _session: Session, _idle_hours: int) -> bool:
        """True: the log has the time of the last call, and the caller has checked it."""
        return True


class DeterministicClock:
    """Times that count records, and ids computed from the number of records and the call.

    Counted times do not show how long a session was idle, so this process remembers it. A session of another process
    is unknown here, and therefore not in use.
    """

    def __init__(self, workspaces: Iterable[Workspace]) -> None:
        self._workspaces = tuple(workspaces)
        self._lock = threading.Lock()  # protects `_records` and `_stamped`
        self._records: tuple[int, ...] = ()
        self._stamped: Counter[str] = Counter()
        """How often each call was stamped since the last record, so that equal calls get different ids."""
        self._last_used: dict[str, str] = {}

    def stamp(self, call_request: CallRequest) -> tuple[str, str]:
        """An id that only this call has, and the time of the next record."""
        arguments = redaction.redact_arguments(call_request.arguments)
        fingerprint = json.dumps([call_request.tool_name, arguments], sort_keys=True, separators=(",", ":"))
        with self._lock:
            records = tuple(map(_count_records, self._workspaces))
            if records != self._records:
                self._records = records
                self._stamped.clear()
            earlier = self._stamped[fingerprint]
            self._stamped[fingerprint] += 1
        repeated = (str(earlier),) if earlier else ()
        # Not their sum: a server of other workspaces may have the same sum, and get the same call.
        counts = ",".join(map(str, records))
        return derive_id("call", counts, fingerprint, *repeated), counted_timestamp(sum(records))

    def new_session_id(self, request_id: str) -> str:
        """An id computed from that of the call."""
        return derive_id("session", request_id)

    def note_use(self, session_id: str) -> None:
        """Remember the real time."""
        self._last_used[session_id] = current_timestamp()

    def is_in_use(self, session: Session, idle_hours: int) -> bool:
        """Whether this process has used the session in that time."""
        last = self._last_used.get(session.session_id)
        return last is not None and current_timestamp() <= replace(session, last_call_at=last).expires_at(idle_hours)


def _count_records(workspace: Workspace) -> int:
    """Number of records, with those that people have appended since the last call; 0 if the log cannot be followed."""
    try:
        workspace.follow()
    except errors.SystemError:  # the call reports it, when it cannot be recorded
        return 0
    head = workspace.log.head
    return head.seq if head is not None else 0
