"""State projected from the audit log: sessions, locks, freezes, seals, approvals and the usage of plans.

`record_folding` keeps it up to date record by record.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from kaiza.domain import error_codes
from kaiza.domain.plans.plan import PlanUsage

ROLES = ("ANTIGRAVITY", "WINDSURF")
CHANGING_TOOLS = frozenset(
    {"write_file", "edit_file", "apply_patch", "move_file", "delete_file", "undo_changes", "run_checks"}
)
LOCKING_INVARIANTS = frozenset({"CONTROL_PLANE_PROTECTED", "READ_PROTECTED"})
_HOUR_LENGTH = len("2026-11-18T09")
"""So much of a time says day and hour."""
MAX_RELEASES_PER_DAY = 3
"""So often within 24 hours a report unlocks a role."""
UNMATCHABLE_HASH = "0" * 64
"""The hash that no plan has: an approval or a seal of it is met by nothing until a person approves anew."""
NON_LOCKING_INVARIANTS = frozenset({"PLAN_LIMIT_REACHED"})


@dataclass(frozen=True, slots=True)
class Session:
    """One session as its records tell it."""

    session_id: str
    role: str
    workspace_root: str
    begun_at: str
    last_call_at: str
    client: str | None = None
    calls: int = 0
    changes: int = 0
    refusals: int = 0

    def with_call(self, call_at: str, changes: int, *, refused: bool) -> "Session":
        """The session with one call more."""
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
        )

    def expires_at(self, idle_hours: int) -> str:
        """When the session ends if nobody calls."""
        end = datetime.fromisoformat(self.last_call_at) + timedelta(hours=idle_hours)
        return end.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class RoleLock:
    """Why a role may not change anything now."""

    role: str
    error_code: str
    session_id: str | None
    request_id: str
    seq: int
    at: str


@dataclass(frozen=True, slots=True)
class Freeze:
    """Why nobody may change anything now."""

    reason: str
    person: str | None
    at: str


@dataclass(frozen=True, slots=True)
class PlanSeal:
    """The bytes of a plan that a person approved."""

    plan_hash: str
    how: str
    approved_by: str | None
    seq: int


@dataclass(slots=True)
class AuditState:
    """Everything the record says that a rule needs, kept up to date record by record."""

    sessions: dict[str, Session] = field(default_factory=dict)
    changed: dict[str, list[int]] = field(default_factory=dict)
    """By session, the records of its changes, in order."""
    locks: dict[str, RoleLock] = field(default_factory=dict)
    released: dict[str, list[str]] = field(default_factory=dict)
    """When reports unlocked a role; only the last few count."""
    reports: list[str] = field(default_factory=list)
    """When the last reports were written, of any role; as many as a day may have."""
    frozen: Freeze | None = None
    seals: dict[str, PlanSeal] = field(default_factory=dict)
    approvals: dict[str, str] = field(default_factory=dict)
    """plan_id to the bytes of a person's last word by command; what was rejected or revoked is not APPROVED in them."""
    withdrawn: dict[str, str] = field(default_factory=dict)
    """plan_id to the command, `reject` or `revoke`, by which a person took it back and has not approved it since."""
    usage: dict[str, PlanUsage] = field(default_factory=dict)
    intents: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Intents without an outcome so far, by request id."""

    def find_open_session(self, session_id: str, now: str, idle_hours: int) -> Session | None:
        """The session, if it has begun, has not ended and was used recently enough."""
        session = self.sessions.get(session_id)
        if session is None:
            return None
        same_hour = idle_hours > 0 and now[:_HOUR_LENGTH] == session.last_call_at[:_HOUR_LENGTH]
        return session if same_hour or now <= session.expires_at(idle_hours) else None

    def count_releases_since(self, role: str, since: str) -> int:
        """How often a report has unlocked a role since then."""
        return sum(1 for at in self.released.get(role, ()) if at > since)

    def count_reports_since(self, since: str) -> int:
        """How many reports were written since then; no more are known than a day may have."""
        return sum(1 for at in self.reports if at > since)

    def without_expired(self, now: str, idle_hours: int) -> "AuditState":
        """The same facts without the sessions that nobody can use again."""
        living = {key: one for key, one in self.sessions.items() if now <= one.expires_at(idle_hours)}
        changed = {key: seqs for key, seqs in self.changed.items() if key in living}
        return replace(self, sessions=living, changed=changed)

    def as_json(self) -> dict[str, Any]:
        """The facts as plain JSON, for the index."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "AuditState":
        """The facts an index holds."""
        return cls(
            sessions={key: Session(**one) for key, one in told["sessions"].items()},
            changed={key: list(one) for key, one in told["changed"].items()},
            locks={key: RoleLock(**one) for key, one in told["locks"].items()},
            released={key: list(one) for key, one in told["released"].items()},
            reports=list(told.get("reports", ())),
            frozen=Freeze(**told["frozen"]) if told["frozen"] else None,
            seals={key: PlanSeal(**one) for key, one in told["seals"].items()},
            approvals=dict(told["approvals"]),
            withdrawn=dict(told.get("withdrawn", {})),
            usage={key: PlanUsage(**one) for key, one in told["usage"].items()},
            intents=dict(told["intents"]),
        )


def day_before(now: str) -> str:
    """The time 24 hours earlier, as records tell it."""
    return (datetime.fromisoformat(now) - timedelta(days=1)).isoformat(timespec="milliseconds")[:-6] + "Z"


def is_locking_refusal(error_code: str, invariant_id: str | None, *, asked_for_change: bool) -> bool:
    """Whether a refusal with this code closes the workspace to its role."""
    if not asked_for_change or invariant_id in NON_LOCKING_INVARIANTS:
        return False
    return error_codes.lookup(error_code).locks or invariant_id in LOCKING_INVARIANTS


def is_change_attempt(tool_name: str, arguments: object) -> bool:
    """Whether a call meant to alter files, as opposed to reading or trying."""
    dry = isinstance(arguments, Mapping) and arguments.get("dry_run") is True
    return tool_name in CHANGING_TOOLS and not dry


def merge_times(one: Iterable[str], other: Iterable[str]) -> list[str]:
    """The times that one of two accounts knows, as often as the one that knows it more often."""
    return sorted((Counter(one) | Counter(other)).elements())
