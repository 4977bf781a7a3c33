"""Timeline of the report: events in four lanes by actor, and the spans in which a role was locked."""

from dataclasses import dataclass
from typing import Literal

Actor = Literal["person", "planner", "executor", "outside"]
ACTORS: tuple[Actor, ...] = ("person", "planner", "executor", "outside")
ACTOR_NAMES = {"person": "Person", "planner": "Planner", "executor": "Executor", "outside": "Without Kaiza"}

EventKind = Literal[
    "read",  # reads, searches, status, sessions
    "change",
    "undone_change",  # a change that was undone later
    "undo",
    "draft",  # a plan was saved
    "report",
    "refusal",
    "locking_refusal",
    "approval",
    "decision",  # another decision of a person: revoke, freeze, unlock, …
    "recovery",
    "outside",  # changes without Kaiza
]


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One event. `until` is set where only an interval is known: an approval by editing, changes without Kaiza."""

    kind: EventKind
    actor: Actor
    at: str
    label: str
    """What happened in a few words, without paths: `write_file`, `approved by an edit of its file`, `3 files`."""
    seq: int | None = None
    until: str | None = None
    path: str | None = None
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class LockedSpan:
    """Time in which a role was locked. `to` is None if it still is."""

    actor: Actor
    role: str
    since: str
    locked_by: int
    to: str | None = None
    released_by: int | None = None
    """Number of the report's or the person's record that released it."""
    release: Literal["report", "person"] | None = None
    other_session: str | None = None
    """The session whose refusal locked, if that refusal is not under review."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Events in the order of time, and locked spans."""

    events: tuple[TimelineEvent, ...] = ()
    locks: tuple[LockedSpan, ...] = ()
    begins_at: str | None = None
    ends_at: str | None = None
