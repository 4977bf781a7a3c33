"""What the record says about sessions, locks, freezes, seals and used-up limits: a fold over its records.

Nothing here is decided; a fact is true because a record says so, and the same records give the same facts.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from kaiza.domain import codes
from kaiza.domain.caps import REPORTS_A_DAY
from kaiza.domain.change import bytes_written
from kaiza.domain.record_shape import require_intent, require_standing, require_texts

ROLES = ("ANTIGRAVITY", "WINDSURF")
CHANGING_TOOLS = frozenset(
    {"write_file", "edit_file", "apply_patch", "move_file", "delete_file", "undo_changes", "run_checks"}
)
LOCKING_INVARIANTS = frozenset({"CONTROL_PLANE_PROTECTED", "READ_PROTECTED"})
_HOUR = len("2026-11-18T09")
"""So much of a time says day and hour."""
MOST_RELEASES = 3
"""So often within 24 hours a report unlocks a role."""
_RELEASES_KEPT = 10
_WORDS_ON_PLANS = ("approve", "reject", "revoke")
NO_BYTES = "0" * 64
"""The hash that no plan has: an approval or a seal of it is met by nothing until a person approves anew."""
MILDER_INVARIANTS = frozenset({"PLAN_LIMIT_REACHED"})


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

    def after(self, call_at: str, changes: int, *, refused: bool) -> "Session":
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
class Lock:
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
class Seal:
    """The bytes of a plan that a person approved."""

    plan_hash: str
    how: str
    approved_by: str | None
    seq: int


@dataclass(slots=True)
class Usage:
    """What has been done under one plan, over all sessions and processes."""

    files: dict[str, int] = field(default_factory=dict)
    """Distinct paths, each with how many changes name it."""
    lines: int = 0
    bytes: int = 0
    operations: int = 0
    refusals: int = 0
    unnamed: int = 0
    """Files of a log before this one whose paths were too many to be carried over."""

    @property
    def file_count(self) -> int:
        """How many distinct files count against the plan's limit; a path that is not named may count once more."""
        return len(self.files) + self.unnamed


@dataclass(slots=True)
class Facts:
    """Everything the record says that a rule needs, kept up to date record by record."""

    sessions: dict[str, Session] = field(default_factory=dict)
    changed: dict[str, list[int]] = field(default_factory=dict)
    """By session, the records of its changes, in order."""
    locks: dict[str, Lock] = field(default_factory=dict)
    released: dict[str, list[str]] = field(default_factory=dict)
    """When reports unlocked a role; only the last few count."""
    reports: list[str] = field(default_factory=list)
    """When the last reports were written, of any role; as many as a day may have."""
    frozen: Freeze | None = None
    seals: dict[str, Seal] = field(default_factory=dict)
    approvals: dict[str, str] = field(default_factory=dict)
    """plan_id to the bytes of a person's last word by command; what was rejected or revoked is not APPROVED in them."""
    withdrawn: dict[str, str] = field(default_factory=dict)
    """plan_id to the command, `reject` or `revoke`, by which a person took it back and has not approved it since."""
    usage: dict[str, Usage] = field(default_factory=dict)
    intents: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Intents without an outcome so far, by request id."""

    def apply(self, record: Mapping[str, Any]) -> None:
        """Take in the next record of the log; one that is not shaped as Kaiza writes them tells nothing.

        The chain says nothing about a record's members, and a log that came with a clone may hold any.
        """
        with suppress(TypeError, KeyError, AttributeError, ValueError):
            _BY_KIND.get(record.get("kind", ""), _nothing)(self, record)

    def open_session(self, session_id: str, now: str, idle_hours: int) -> Session | None:
        """The session, if it has begun, has not ended and was used recently enough."""
        session = self.sessions.get(session_id)
        if session is None:
            return None
        same_hour = idle_hours > 0 and now[:_HOUR] == session.last_call_at[:_HOUR]
        return session if same_hour or now <= session.expires_at(idle_hours) else None

    def releases_since(self, role: str, since: str) -> int:
        """How often a report has unlocked a role since then."""
        return sum(1 for at in self.released.get(role, ()) if at > since)

    def reports_since(self, since: str) -> int:
        """How many reports were written since then; no more are known than a day may have."""
        return sum(1 for at in self.reports if at > since)

    def without_expired(self, now: str, idle_hours: int) -> "Facts":
        """The same facts without the sessions that nobody can use again."""
        living = {key: one for key, one in self.sessions.items() if now <= one.expires_at(idle_hours)}
        changed = {key: seqs for key, seqs in self.changed.items() if key in living}
        return replace(self, sessions=living, changed=changed)

    def as_json(self) -> dict[str, Any]:
        """The facts as plain JSON, for the index."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Facts":
        """The facts an index holds."""
        return cls(
            sessions={key: Session(**one) for key, one in told["sessions"].items()},
            changed={key: list(one) for key, one in told["changed"].items()},
            locks={key: Lock(**one) for key, one in told["locks"].items()},
            released={key: list(one) for key, one in told["released"].items()},
            reports=list(told.get("reports", ())),
            frozen=Freeze(**told["frozen"]) if told["frozen"] else None,
            seals={key: Seal(**one) for key, one in told["seals"].items()},
            approvals=dict(told["approvals"]),
            withdrawn=dict(told.get("withdrawn", {})),
            usage={key: Usage(**one) for key, one in told["usage"].items()},
            intents=dict(told["intents"]),
        )


def a_day_before(now: str) -> str:
    """The time 24 hours earlier, as records tell it."""
    return (datetime.fromisoformat(now) - timedelta(days=1)).isoformat(timespec="milliseconds")[:-6] + "Z"


def locks(error_code: str, invariant_id: str | None, *, asked_for_change: bool) -> bool:
    """Whether a refusal with this code closes the workspace to its role."""
    if not asked_for_change or invariant_id in MILDER_INVARIANTS:
        return False
    return codes.lookup(error_code).locks or invariant_id in LOCKING_INVARIANTS


def asked_for_change(tool_name: str, arguments: object) -> bool:
    """Whether a call meant to alter files, as opposed to reading or trying."""
    dry = isinstance(arguments, Mapping) and arguments.get("dry_run") is True
    return tool_name in CHANGING_TOOLS and not dry


def _text(told: object) -> str | None:
    return told if isinstance(told, str) else None


def _nothing(_facts: Facts, _record: Mapping[str, Any]) -> None:
    """A kind of record that changes no fact."""


def _call(facts: Facts, record: Mapping[str, Any]) -> None:
    ok = record["outcome"] == "ok"
    datetime.fromisoformat(record["timestamp"])  # sessions end by it
    intent = facts.intents.pop(record["request_id"], None)
    if intent is not None and not ok:
        _charge(facts, intent, -1)
    if record["tool_name"] == "begin_session":
        if ok:
            _begin(facts, record)
        return
    session = facts.sessions.get(record["session_id"] or "")
    if session is not None:
        _count(facts, session, record, ok=ok)
    if not ok:
        _refused(facts, record)
    elif record["tool_name"] == "end_session" and session is not None:
        del facts.sessions[session.session_id]
        facts.changed.pop(session.session_id, None)
    elif record["tool_name"] == "write_report":
        _reported(facts, record)


def _begin(facts: Facts, record: Mapping[str, Any]) -> None:
    require_texts(record, "session_id", "role", "workspace_root")
    require_texts(record, "client", or_null=True)
    facts.sessions[record["session_id"]] = Session(
        session_id=record["session_id"],
        role=record["role"],
        workspace_root=record["workspace_root"],
        begun_at=record["timestamp"],
        last_call_at=record["timestamp"],
        client=record["client"],
        calls=1,
    )


def _count(facts: Facts, session: Session, record: Mapping[str, Any], *, ok: bool) -> None:
    datetime.fromisoformat(record["timestamp"])
    changes = record["changes"] if ok and record["changes"] else ()
    facts.sessions[session.session_id] = session.after(record["timestamp"], len(changes), refused=not ok)
    if changes:
        facts.changed.setdefault(session.session_id, []).append(record["seq"])


def _refused(facts: Facts, record: Mapping[str, Any]) -> None:
    if record["error_code"] not in codes.REGISTRY:
        return
    meant = asked_for_change(record["tool_name"], record["arguments"])
    if not locks(record["error_code"], record["invariant_id"], asked_for_change=meant):
        return
    require_texts(record, "plan_id", "role", "session_id", "request_id", or_null=True)
    if record["plan_id"]:
        facts.usage.setdefault(record["plan_id"], Usage()).refusals += 1
    role = record["role"]
    if role and role not in facts.locks:
        facts.locks[role] = Lock(
            role=role,
            error_code=record["error_code"],
            session_id=record["session_id"],
            request_id=record["request_id"],
            seq=record["seq"],
            at=record["timestamp"],
        )


def _reported(facts: Facts, record: Mapping[str, Any]) -> None:
    require_texts(record, "role")
    facts.reports = [*facts.reports, record["timestamp"]][-REPORTS_A_DAY:]
    if (record["detail"] or {}).get("unlocked"):
        facts.locks.pop(record["role"], None)
        facts.released[record["role"]] = [*facts.released.get(record["role"], ()), record["timestamp"]][
            -_RELEASES_KEPT:
        ]


def _intent(facts: Facts, record: Mapping[str, Any]) -> None:
    intent = {
        "seq": record["seq"],
        "session_id": record["session_id"],
        "tool_name": record["tool_name"],
        "plan_id": record["plan_id"],
        "plan_hash": record["plan_hash"],
        "detail": record["detail"],
        "changes": record["changes"] or [],
    }
    require_texts(record, "request_id")
    require_intent(intent)
    _charge(facts, intent, 1)
    facts.intents[record["request_id"]] = intent


def _charge(facts: Facts, intent: Mapping[str, Any], sign: int) -> None:
    """Count an intent against its plan's limits, or take it back because nothing came of it."""
    if not intent["plan_id"] or (intent["detail"] or {}).get("unlimited"):
        return
    usage = facts.usage.setdefault(intent["plan_id"], Usage())
    for change in intent["changes"] or ():
        for path in filter(None, (change["path"], change["source"])):
            usage.files[path] = usage.files.get(path, 0) + sign
            if not usage.files[path]:
                del usage.files[path]
        usage.lines += sign * (change["lines_added"] + change["lines_removed"])
        usage.bytes += sign * bytes_written(change)
        usage.operations += sign


def _plan(facts: Facts, record: Mapping[str, Any]) -> None:
    require_texts(record, "plan_id", "plan_hash")
    detail = record["detail"] or {}
    facts.seals[record["plan_id"]] = Seal(
        plan_hash=record["plan_hash"],
        how=_text(detail.get("how")) or "edited",
        approved_by=_text(detail.get("approved_by")),
        seq=record["seq"],
    )


def _recovery(facts: Facts, record: Mapping[str, Any]) -> None:
    intent = facts.intents.pop(record["request_id"], None)
    result = (record["detail"] or {}).get("result")
    if intent is not None and result in ("not_applied", "taken_back"):
        _charge(facts, intent, -1)
    if result == "applied" and record["changes"] and record["session_id"] in facts.sessions:
        facts.changed.setdefault(record["session_id"], []).append(record["seq"])


def _person(facts: Facts, record: Mapping[str, Any]) -> None:
    detail = record["detail"] or {}
    action = detail.get("action")
    at = _text(record["timestamp"]) or ""
    if action == "freeze":
        facts.frozen = _freeze(detail, at)
    elif action == "thaw":
        facts.frozen = None
    elif action == "unlock":
        for role in [record["role"]] if record["role"] else ROLES:
            facts.locks.pop(role, None)
    elif action == "accept":
        _carried_over(facts, detail.get("standing") or {}, at)
    elif action in _WORDS_ON_PLANS:
        require_texts(record, "plan_id", "plan_hash")
        facts.approvals[record["plan_id"]] = record["plan_hash"]
        facts.withdrawn.pop(record["plan_id"], None)
        if action != "approve":
            facts.withdrawn[record["plan_id"]] = action
    facts.intents.pop(record["request_id"], None)


def _freeze(told: Mapping[str, Any], at: str) -> Freeze:
    """A freeze binds, whatever its reason is."""
    return Freeze(_text(told.get("reason")) or "", _text(told.get("person")), _text(told.get("at")) or at)


def either(one: Iterable[str], other: Iterable[str]) -> list[str]:
    """The times that one of two accounts knows, as often as the one that knows it more often."""
    return sorted((Counter(one) | Counter(other)).elements())


def higher(one: Usage, other: Usage) -> Usage:
    """The use of a plan by which less is left, whichever of two accounts is right."""
    files = {path: max(one.files.get(path, 0), other.files.get(path, 0)) for path in {**one.files, **other.files}}
    return Usage(
        files,
        max(one.lines, other.lines),
        max(one.bytes, other.bytes),
        max(one.operations, other.operations),
        max(one.refusals, other.refusals),
        max(one.unnamed, other.unnamed),
    )


def _carried_over(facts: Facts, told: Mapping[str, Any], at: str) -> None:
    """Take in a part of what `carried.parts` made of the log before this one; an older Kaiza named only the first two.

    A process that knew the old log is told it too, so nothing here loosens what is known.
    """
    if told.get("frozen"):
        facts.frozen = _freeze(told["frozen"], at)
    require_standing(told)
    facts.locks.update({one["role"]: Lock(**one) for one in told.get("locks", ())})
    facts.approvals.update({one["plan_id"]: one["plan_hash"] for one in told.get("approvals", ())})
    facts.withdrawn.update({one["plan_id"]: one["action"] for one in told.get("withdrawn", ())})
    for one in told.get("intents", ()):
        before = facts.intents.get(one["request_id"], {"changes": []})["changes"][: one["at"]]
        facts.intents[one["request_id"]] = {**one["intent"], "changes": [*before, *one["intent"]["changes"]]}
    for one in told.get("seals", ()):
        facts.seals[one["plan_id"]] = Seal(**one["seal"])
    for one in told.get("released", ()):
        known = facts.released.get(one["role"], ())
        facts.released[one["role"]] = sorted({*known, *one["at"]})[-_RELEASES_KEPT:]
    for one in told.get("reports", ()):
        facts.reports = either(facts.reports, one["at"])[-REPORTS_A_DAY:]
    for one in told.get("usage", ()):
        use = Usage(**{**one["use"], "files": dict(one["use"]["files"])})
        facts.usage[one["plan_id"]] = higher(facts.usage.get(one["plan_id"], Usage()), use)


_BY_KIND = {"call": _call, "intent": _intent, "plan": _plan, "recovery": _recovery, "person": _person}
