"""The strict reading of a plan: a value, or the findings that say why its bytes count for nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any

from kaiza.domain import head
from kaiza.domain.finding import Finding, has_error
from kaiza.domain.lint_layout import warn_of_layout
from kaiza.domain.lint_scope import read_phase_scope, read_scope
from kaiza.domain.plan import LIMITS, LONGEST_ID, STATUSES, Limits, Phase, Plan, Policy, is_plan_id
from kaiza.domain.shape import Shape
from kaiza.domain.words import Items, Keys, Node, Word

MAX_PHASES = 50
LAST_YEAR = 9999
_REQUIRED = ("kaiza_plan", "plan_id", "title", "status", "author", "created", "scope")
_RULES = ("secrets", "stubs", "rust")
_PHASE_ID = 64


@dataclass(frozen=True, slots=True)
class Reading:
    """What some bytes came to as a plan: a plan only if there is no error among the findings."""

    plan_hash: str
    findings: tuple[Finding, ...]
    plan: Plan | None = None
    text: str = ""
    words: Mapping[str, Word] = field(default_factory=dict)
    """The words that stand directly under the head's keys."""

    @property
    def title(self) -> str:
        """The title as far as it can be read, for a list."""
        return self.words["title"].value if "title" in self.words else ""


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan's file as it is now: its name, its bytes, and what they parse to."""

    plan_id: str
    content: bytes
    reading: Reading


def read(content: bytes, plan_id: str | None = None) -> Reading:
    """Read a plan's bytes; where the name of its file is known, its `plan_id` must be that name."""
    plan_hash = sha256(content).hexdigest()
    bare = head.read(content)
    if bare.root is None:
        return Reading(plan_hash, tuple(sorted(bare.findings)), text=bare.text)
    shape = Shape()
    told = _told(shape, bare.root, plan_id)
    warn_of_layout(shape, bare.text, bare.root)
    findings = tuple(sorted([*bare.findings, *shape.findings]))
    plan = None if has_error(findings) else Plan(plan_hash=plan_hash, **told)
    return Reading(plan_hash, findings, plan, bare.text, _words(bare.root))


def _told(shape: Shape, root: Keys, plan_id: str | None) -> dict[str, Any]:
    for key, _ in root.pairs:
        if key.place.column or (isinstance(key, Word) and key.quote):
            shape.error(key.place, "key", "A key of the head is not at the line's beginning", "Write it there, plainly")
    readers: dict[str, Callable[[Node], Any]] = {
        "kaiza_plan": partial(shape.one_of, choices=("1",)),
        "plan_id": partial(_plan_id, shape, plan_id),
        "title": shape.text,
        "status": partial(shape.one_of, choices=STATUSES),
        "author": shape.text,
        "created": partial(_date, shape),
        "approved_by": shape.text_or_null,
        "approved_at": partial(_moment_or_null, shape),
        "expires": partial(_moment_or_null, shape),
        "scope": partial(read_scope, shape),
        "limits": partial(_limits, shape),
        "phases": partial(_phases, shape),
        "policy": partial(_policy, shape),
    }
    told = shape.keys(root, {key: partial(_beside, shape, root, read) for key, read in readers.items()}, _REQUIRED)
    told.pop("kaiza_plan", None)
    return told


def _beside(shape: Shape, root: Keys, read: Callable[[Node], Any], node: Node) -> Any:
    """A word stands on its key's own line, where a person looks for it."""
    key = next(key for key, value in root.pairs if value is node)
    if isinstance(node, Word) and node.place.line != key.place.line:
        shape.error(node.place, "key", "The value is not on its key's line", "Write key: value on one line")
    return read(node)


def _words(root: Keys) -> dict[str, Word]:
    return {key.value: value for key, value in root.pairs if isinstance(key, Word) and isinstance(value, Word)}


def _plan_id(shape: Shape, expected: str | None, node: Node) -> str | None:
    told = shape.text(node)
    if told is None:
        return None
    if not is_plan_id(told):
        fix = f"Use capitals and digits, then parts after hyphens, at most {LONGEST_ID}: PLAN-0007-rotate-tokens"
        shape.error(node.place, "plan-id", "The plan_id is not a name that plans have", fix)
    elif expected is not None and told != expected:
        shape.error(node.place, "plan-id", "The plan_id is not the file's name", f"Write plan_id: {expected}")
    return told


def _date(shape: Shape, node: Node) -> str | None:
    """A day or a moment, for people to read; nothing is decided by it."""
    told = shape.text(node)
    if told is not None and _read_moment(told) is None:
        shape.error(node.place, "time", "This is no date", 'Write it like "2026-11-18T09:00:00Z"')
    return told


def _moment(shape: Shape, node: Node) -> str | None:
    """A moment in UTC with milliseconds, as records have it, so that the two compare as text."""
    told = shape.text(node)
    moment = _read_moment(told) if told else None
    if moment is not None and moment.tzinfo is not None:
        return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    shape.error(node.place, "time", "This is no date with a time and a zone", 'Write it like "2026-11-18T09:00:00Z"')
    return None


def _read_moment(text: str) -> datetime | None:
    """The moment, unless it is none, or one too near the ends of the calendar to be meant."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if 1 < moment.year < LAST_YEAR else None


def _moment_or_null(shape: Shape, node: Node) -> str | None:
    if isinstance(node, Word) and not node.quote and node.value in {"", "~", "null"}:
        return None
    return _moment(shape, node)


def _limits(shape: Shape, node: Node) -> Limits:
    return Limits(**shape.keys(node, dict.fromkeys(LIMITS, shape.number)))


def _policy(shape: Shape, node: Node) -> Policy:
    told = shape.keys(node, dict.fromkeys(_RULES, partial(shape.one_of, choices=("refuse", "allow"))))
    if told.get("secrets") == "allow":
        shape.warn(node.place, "secrets-allowed", "The plan lets secrets be written", "Write secrets: refuse")
    chosen = {rule: word == "refuse" for rule, word in told.items()}
    return Policy(**chosen)


def _phases(shape: Shape, node: Node) -> tuple[Phase, ...]:
    phases = shape.items(node, partial(_phase, shape))
    if len(phases) > MAX_PHASES:
        shape.error(node.place, "too-large", f"There are more than {MAX_PHASES} phases", "Split the plan")
    seen: set[str] = set()
    for phase in phases:
        if phase.phase_id in seen:
            shape.error(node.place, "duplicate-phase", f"The phase {phase.phase_id} stands twice", "Rename one")
        seen.add(phase.phase_id)
    return phases


def _phase(shape: Shape, node: Node) -> Phase | None:
    readers: dict[str, Callable[[Node], Any]] = {
        "phase_id": partial(_phase_id, shape),
        "objective": shape.text,
        "scope": partial(read_phase_scope, shape),
        "verify": lambda value: shape.items(value, partial(_command, shape)),
    }
    told = shape.keys(node, readers, ("phase_id",))
    return Phase(**told) if told.get("phase_id") else None


def _phase_id(shape: Shape, node: Node) -> str | None:
    told = shape.text(node)
    if told is None or (len(told) <= _PHASE_ID and told.isascii() and told.replace("_", "").replace("-", "").isalnum()):
        return told
    shape.error(node.place, "phase-id", "The phase_id is not a name", "Use letters, digits, - and _: PHASE_1")
    return None


def _command(shape: Shape, node: Node) -> tuple[str, ...] | None:
    """A command as its words; one that is a single text would need a shell."""
    if not isinstance(node, Items) or not node.items:
        shape.error(node.place, "verify", "A command is a list of words", 'Write ["pytest", "-q"]')
        return None
    return shape.items(node, shape.text)
