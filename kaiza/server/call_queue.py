"""Queue of calls: decides which call runs next. Lanes never wait for each other, and principals take turns in each.

Decides only: it starts no thread, reads no clock and is not thread-safe.
"""

from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from kaiza.domain.call import Principal

MAX_STUCK: Final = 24
"""Calls of one lane that run without a place, because they are stuck."""


class Lane:
    """Calls that wait for each other only."""

    def __init__(self, name: str, places: int = 4, stuck_after: float | None = None) -> None:
        self.name: Final = name
        self.places: Final = places
        """Calls that run at a time."""
        self.stuck_after: Final = stuck_after
        """Seconds after which a running call makes room for one that waits; None: at its deadline."""


READS: Final = Lane("reads", stuck_after=0.25)
"""Short calls. A large file or the log's lock may keep one of them for seconds."""

CHANGES: Final = Lane("changes", stuck_after=0.25)
"""Calls that write. Those of one workspace wait for each other, and may be large."""

# More scans at a time would not end sooner: they share one interpreter, and would take it from all other calls.
SCANS: Final = Lane("scans")
"""Calls that read many files or the log, such as an undo. So do, for all we know, those of unknown tools."""

CHECKS: Final = Lane("checks")
"""Calls that wait for commands, which may run for minutes."""

_LANES: Final = {
    READS: (
        *("begin_session", "session_status", "server_info", "mcp.server.info"),
        *("read_file", "read_files", "read_location", "file_info", "list_directory"),
        *("list_plans", "read_plan", "lint_plan"),
    ),
    CHANGES: (
        *("write_file", "edit_file", "apply_patch", "move_file", "delete_file"),
        *("save_plan", "write_report"),
    ),
    CHECKS: ("run_checks",),
}
_LANE_BY_TOOL: Final = {tool: lane for lane, tools in _LANES.items() for tool in tools}


def find_lane(tool_name: str) -> Lane:
    """The lane of a tool, by its name or alias."""
    return _LANE_BY_TOOL.get(tool_name, SCANS)


class QueuedCall:
    """A call that waits for a place in its lane, or has one."""

    def __init__(self, lane: Lane, principal: "Principal | None" = None) -> None:
        self.lane: Final = lane
        self.principal: Final = principal
        """None if the server has one caller or cannot tell its callers apart."""
        self.began_at = 0.0
        """When it got its place."""


Queued = TypeVar("Queued", bound=QueuedCall)


class CallQueue(Generic[Queued]):
    """Calls that wait, run or are stuck. Whoever takes a call runs it and says when it has ended."""

    def __init__(self) -> None:
        self._waiting: dict[Lane, dict[Principal | None, deque[Queued]]] = {}
        """By lane and principal; the principals in the order of their turns."""
        self._running: set[Queued] = set()
        self._stuck: set[Queued] = set()

    def is_waiting(self) -> bool:
        """Whether a call waits for a place."""
        return bool(self._waiting)

    def add(self, call: Queued) -> None:
        """Put a call behind those of its lane and principal."""
        self._waiting.setdefault(call.lane, {}).setdefault(call.principal, deque()).append(call)

    def take(self, now: float) -> Queued | None:
        """The next call that may run, which gets its place; None if there is none."""
        for lane in self._waiting:
            for call in [running for running in self._running if running.lane is lane]:
                if lane.stuck_after is not None and now - call.began_at >= lane.stuck_after:
                    self.release_stuck(call)
            for principal in self._waiting[lane]:
                if self._has_room(self._running, lane, lane.places, principal):
                    # Popped, so that the principal's next turn comes after those of all others.
                    calls = self._waiting[lane].pop(principal)
                    call = calls.popleft()
                    self._set_waiting(lane, principal, calls)
                    call.began_at = now
                    self._running.add(call)
                    return call
        return None

    def remove(self, call: Queued) -> None:
        """Drop a call that may still be waiting."""
        calls = self._waiting.get(call.lane, {}).get(call.principal, deque())
        if call in calls:
            calls.remove(call)
            self._set_waiting(call.lane, call.principal, calls)

    def release_stuck(self, call: Queued) -> None:
        """Let the next call run although this one does not end, unless too many are stuck already."""
        if call in self._running and self._has_room(self._stuck, call.lane, MAX_STUCK, call.principal):
            self._running.discard(call)
            self._stuck.add(call)

    def finish(self, call: Queued) -> None:
        """Note that a call has ended."""
        self._running.discard(call)
        self._stuck.discard(call)

    def _has_room(self, calls: set[Queued], lane: Lane, limit: int, principal: "Principal | None") -> bool:
        """Whether another call of this principal may join these. A principal leaves a quarter to others."""
        same_lane = [call.principal for call in calls if call.lane is lane]
        share = limit if principal is None else limit - limit // 4
        return len(same_lane) < limit and same_lane.count(principal) < share

    def _set_waiting(self, lane: Lane, principal: "Principal | None", calls: deque[Queued]) -> None:
        principals = self._waiting[lane]
        if calls:
            principals[principal] = calls
        else:
            principals.pop(principal, None)
        if not principals:
            del self._waiting[lane]
