"""State projected from the audit log: sessions, role locks, freeze, plan seals, approvals, plan usage, open intents.

`record_folding` updates it record by record.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

from kaiza.domain import error_codes
from kaiza.domain.audit.record import Record
from kaiza.domain.plans.plan import PlanUsage
from kaiza.domain.timestamps import format_timestamp

# run_checks runs the plan's commands, which may write files.
CHANGING_TOOLS = frozenset(
    {"write_file", "edit_file", "apply_patch", "move_file", "delete_file", "undo_changes", "run_checks"}
)
LOCKING_INVARIANTS = frozenset({"CONTROL_PLANE_PROTECTED", "READ_PROTECTED"})
_HOUR_LENGTH = len("2026-11-18T09")
MAX_RELEASES_PER_DAY = 3
"""How often in 24 hours a report unlocks a role."""
MAX_MORE_FREEZES = 10
"""Reasons that are kept beside the first one: all must fit into one record when they are carried over."""
_MAX_REASON, _MAX_PERSON, _MAX_TIME = 1000, 200, 64
UNMATCHABLE_HASH = "0" * 64
"""Hash of no plan. An approval or seal with it matches nothing until a person approves again."""
UNPROVEN = "unproven"
"""`how` of a seal that only a damaged log had: it keeps other content out, but approves nothing."""
# Reaching a limit is expected in normal work, unlike leaving the scope, which has the same code.
NON_LOCKING_INVARIANTS = frozenset({"PLAN_LIMIT_REACHED"})
NEW_WORKSPACE = "new_workspace"
"""`cause.rule` of a refused change that would have made a workspace below the root. It does not lock."""


@dataclass(frozen=True, slots=True)
class Session:
    """One session."""

    session_id: str
    role: str
    workspace_root: str
    begun_at: str
    last_call_at: str
    client: str | None = None
    calls: int = 0
    changes: int = 0
    refusals: int = 0
    principal: str | None = None
    """Label of the token that began it over HTTP; None for stdio."""
    live: str | None = None
    """Id under which the process that began it lists the sessions it serves; None if it lists none."""

    def with_call(self, call_at: str, changes: int, *, refused: bool) -> "Session":
        """Copy of the session with one more call."""
        return Session(
            self.session_id,
            self.role,
            self.workspace_root,
            self.begun_at,
            max(self.last_call_at, call_at),
            self.client,
            self.calls + 1,
            self.changes + changes,
            self.refusals + refused,
            self.principal,
            self.live,
        )

    def expires_at(self, idle_hours: int) -> str:
        """When the session ends unless there is another call."""
        return format_timestamp(datetime.fromisoformat(self.last_call_at) + timedelta(hours=idle_hours))


@dataclass(frozen=True, slots=True)
class RoleLock:
    """Lock of a role: the refusal that caused it."""

    role: str
    error_code: str
    session_id: str | None
    request_id: str | None
    seq: int
    at: str


@dataclass(frozen=True, slots=True)
class Freeze:
    """Freeze of the workspace by a person. While it is set, no role may change anything."""

    reason: str
    person: str | None
    at: str
    more: tuple["Freeze", ...] = ()
    """Freezes since, each with a reason of its own; a thaw lifts all of them."""

    @property
    def each(self) -> tuple["Freeze", ...]:
        """The first freeze and those since, one by one."""
        return (replace(self, more=()), *self.more)

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "Freeze":
        """Load a freeze from a snapshot; TypeError or KeyError if it is none."""
        first, *more = ((one["reason"], one["person"], one["at"]) for one in (members, *members.get("more", ())))
        if not all(isinstance(text, str | None) for one in (first, *more) for text in one):
            raise TypeError
        return cls(*first, tuple(cls(*one) for one in more))


@dataclass(frozen=True, slots=True)
class PlanSeal:
    """Hash of the plan content that a person approved, and how the approval was made."""

    plan_hash: str
    how: str
    approved_by: str | None
    seq: int


@dataclass(slots=True)
class AuditState:
    """State projected from the log that rules need."""

    sessions: dict[str, Session] = field(default_factory=dict)
    changed: dict[str, list[int]] = field(default_factory=dict)
    """Sequence numbers of a session's records with changes, in order."""
    locks: dict[str, RoleLock] = field(default_factory=dict)
    released: dict[str, list[str]] = field(default_factory=dict)
    """Times at which reports unlocked a role; only the latest are kept."""
    reports: list[str] = field(default_factory=list)
    """Times of the latest reports by any role, at most a day's allowance."""
    frozen: Freeze | None = None
    seals: dict[str, PlanSeal] = field(default_factory=dict)
    approvals: dict[str, str] = field(default_factory=dict)
    """plan_id to plan hash after the last decision made by command. A rejected plan's content is not APPROVED."""
    withdrawn: dict[str, str] = field(default_factory=dict)
    """plan_id to the last command, `reject` or `revoke`, if the plan was not approved since."""
    usage: dict[str, PlanUsage] = field(default_factory=dict)
    intents: dict[str, Record] = field(default_factory=dict)
    """Intents without an outcome, by request id."""
    states: list[str] = field(default_factory=list)
    """Ids of the state directories that sessions were recorded from; the first few only."""
    is_deterministic: bool = False
    """Whether the log's times only count its records. Its first record decides."""
    is_partial: bool = False
    """Whether only the newest records are applied yet. What such a state lacks is unknown, and never a permission."""

    def find_open_session(self, session_id: str, now: str, idle_hours: int) -> Session | None:
        """The session, unless it is unknown, ended or expired."""
        session = self.sessions.get(session_id)
        if session is None:
            return None
        # Calls in the same hour as the last one, nearly all, need no date arithmetic.
        is_same_hour = idle_hours > 0 and now[:_HOUR_LENGTH] == session.last_call_at[:_HOUR_LENGTH]
        return session if is_same_hour or now <= session.expires_at(idle_hours) else None

    def find_role_state(self, role: str) -> str | None:
        """`locked` or `active`; None if a lock may be in a record that is not applied yet."""
        if role in self.locks:
            return "locked"
        return None if self.is_partial else "active"

    def count_releases_since(self, role: str, since: str) -> int:
        """How often reports unlocked the role since then."""
        return sum(1 for at in self.released.get(role, ()) if at > since)

    def count_reports_since(self, since: str) -> int:
        """Number of reports since then, up to a day's allowance."""
        return sum(1 for at in self.reports if at > since)

    def without_expired(self, now: str, idle_hours: int) -> "AuditState":
        """Copy of the state without expired sessions."""
        sessions = {key: session for key, session in self.sessions.items() if now <= session.expires_at(idle_hours)}
        changed = {key: seqs for key, seqs in self.changed.items() if key in sessions}
        return replace(self, sessions=sessions, changed=changed)

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "AuditState":
        """Load the state from a snapshot."""
        return cls(
            sessions={key: Session(**session) for key, session in members["sessions"].items()},
            changed={key: list(seqs) for key, seqs in members["changed"].items()},
            locks={key: RoleLock(**lock) for key, lock in members["locks"].items()},
            released={key: list(times) for key, times in members["released"].items()},
            reports=list(members["reports"]),
            frozen=Freeze.from_json(members["frozen"]) if members["frozen"] else None,
            seals={key: PlanSeal(**seal) for key, seal in members["seals"].items()},
            approvals=dict(members["approvals"]),
            withdrawn=dict(members["withdrawn"]),
            usage={key: PlanUsage(**usage) for key, usage in members["usage"].items()},
            intents={key: Record(**intent) for key, intent in members["intents"].items()},
            states=list(members["states"]),
            is_deterministic=members["is_deterministic"],
        )


def parse_freeze(members: Mapping[str, Any], at: str) -> Freeze:
    """The freeze in a record, or in a carried-over state, with the reasons that were added to it.

    It is in force even if its members have the wrong type.
    """
    texts = {name: each if isinstance(each := members.get(name), str) else None for name in ("reason", "person", "at")}
    more = more if isinstance(more := members.get("more"), list | tuple) else ()
    added = [parse_freeze({**each, "more": ()}, at) for each in more if isinstance(each, Mapping)]
    frozen = Freeze(texts["reason"] or "", texts["person"], texts["at"] or at)
    return reduce(lambda one, other: merge_freezes(one, other) or one, added, frozen)


def merge_freezes(one: Freeze | None, other: Freeze | None) -> Freeze | None:
    """One freeze with the reasons of both; None if neither is set. The first and the latest reasons are kept."""
    if one is None or other is None:
        return one or other
    first, *more = dict.fromkeys((*one.each, *other.each))
    # Not longer than what a command accepts: all must fit into one record when they are carried over.
    cut = (
        Freeze(each.reason[:_MAX_REASON], each.person and each.person[:_MAX_PERSON], each.at[:_MAX_TIME])
        for each in more[-MAX_MORE_FREEZES:]
    )
    return replace(first, more=tuple(cut))


WITHDRAWAL = "plan_withdrawn"
"""Result of a `recovery` record: a plan's file said DRAFT, REJECTED, REVOKED or DONE after an edit or a commit."""
COUNTED_SEAL = "seal_seq"
"""Member of a `plan` record's detail: it only adds the number of files to the seal with this sequence number."""


def is_late_count(record: Record) -> bool:
    """Whether a `plan` record seals nothing, and only says how many files an earlier seal reaches."""
    return record.kind == "plan" and COUNTED_SEAL in record.detail


def day_before(now: str) -> str:
    """The time 24 hours earlier, in the form of record timestamps."""
    return format_timestamp(datetime.fromisoformat(now) - timedelta(days=1))


def is_locking_refusal(
    error_code: str, invariant_id: str | None, cause: object = None, *, asked_for_change: bool
) -> bool:
    """Whether a refusal with this code locks the role. Refused reads and dry runs never do."""
    if not asked_for_change or invariant_id in NON_LOCKING_INVARIANTS:
        return False
    if isinstance(cause, Mapping) and cause.get("rule") == NEW_WORKSPACE:
        return False
    return error_codes.lookup(error_code).locks or invariant_id in LOCKING_INVARIANTS


def is_change_attempt(tool_name: str | None, arguments: object) -> bool:
    """Whether a call asked to change files: a changing tool without `dry_run`."""
    is_dry_run = isinstance(arguments, Mapping) and arguments.get("dry_run") is True
    return tool_name in CHANGING_TOOLS and not is_dry_run


def merge_times(one: Iterable[str], other: Iterable[str]) -> list[str]:
    """Multiset union of two lists of times, sorted: a time in both is kept as often as in the longer account."""
    return sorted((Counter(one) | Counter(other)).elements())
