"""The strict reading of a plan: a value, or the findings that say why its bytes count for nothing."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any

from kaiza.domain.finding import Finding, has_error
from kaiza.domain.plans import front_matter
from kaiza.domain.plans.field_types import FieldReader
from kaiza.domain.plans.plan import LIMITS, MAX_ID_LENGTH, STATUSES, ContentPolicy, Limits, Phase, Plan, is_plan_id
from kaiza.domain.plans.scope_parser import read_phase_scope, read_scope
from kaiza.domain.plans.yaml_tree import MappingNode, ScalarNode, SequenceNode, YamlNode

MAX_LINE_COLUMNS = 120
MAX_GAP_LINES = 10
"""So many lines may separate a line of the scope from the words before it."""


def warn_about_layout(shape: FieldReader, text: str, root: MappingNode) -> None:
    """Take in a warning for each line of a scope that is easily overlooked."""
    written, before = text.split("\n"), 0
    for number, found in _scalars_by_line(root).items():
        gap, before = number - before - 1, number
        if any(in_scope for _, in_scope in found):
            _warn_about_line(shape, [word for word, _ in found], written[number].removesuffix("\r"), gap)


def _warn_about_line(shape: FieldReader, words: list[ScalarNode], written: str, gap: int) -> None:
    place = words[0].position
    if len(written) > MAX_LINE_COLUMNS:
        message = f"A line of the scope is longer than {MAX_LINE_COLUMNS} columns"
        shape.warn(place, "long-line", message, "Break it, so that a person sees all of it")
    if gap > MAX_GAP_LINES:
        message = f"{gap} lines without a word come before this line of the scope"
        shape.warn(place, "far-apart", message, "Remove them, so that a person sees the scope at once")
    if any("**" in word.value for word in words) and "#" in written[words[-1].end.column :]:
        message = "A comment is beside a pattern with **"
        shape.warn(place, "comment-beside", message, "Write the comment on a line above, or leave it out")


def _scalars_by_line(root: MappingNode) -> dict[int, list[tuple[ScalarNode, bool]]]:
    """The lines with words on them, in order; with each word whether it belongs to a scope."""
    found: dict[int, list[tuple[ScalarNode, bool]]] = {}
    for word, in_scope in _iter_scalars(root, in_scope=False):
        found.setdefault(word.position.line, []).append((word, in_scope))
    return found


def _iter_scalars(node: YamlNode, *, in_scope: bool) -> Iterator[tuple[ScalarNode, bool]]:
    if isinstance(node, ScalarNode):
        yield node, in_scope
    elif isinstance(node, SequenceNode):
        for item in node.items:
            yield from _iter_scalars(item, in_scope=in_scope)
    else:
        for key, value in node.pairs:
            within = in_scope or (isinstance(key, ScalarNode) and key.value == "scope")
            yield from _iter_scalars(key, in_scope=within)
            yield from _iter_scalars(value, in_scope=within)


MAX_PHASES = 50
MAX_YEAR = 9999
_REQUIRED_KEYS = ("kaiza_plan", "plan_id", "title", "status", "author", "created", "scope")
_POLICY_RULES = ("secrets", "stubs", "rust")
_MAX_PHASE_ID = 64


@dataclass(frozen=True, slots=True)
class ParsedPlan:
    """What some bytes came to as a plan: a plan only if there is no error among the findings."""

    plan_hash: str
    findings: tuple[Finding, ...]
    plan: Plan | None = None
    text: str = ""
    scalars: Mapping[str, ScalarNode] = field(default_factory=dict)
    """The words that stand directly under the head's keys."""

    @property
    def title(self) -> str:
        """The title as far as it can be read, for a list."""
        return self.scalars["title"].value if "title" in self.scalars else ""


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan's file as it is now: its name, its bytes, and what they parse to."""

    plan_id: str
    content: bytes
    parsed: ParsedPlan


def parse(content: bytes, plan_id: str | None = None) -> ParsedPlan:
    """Read a plan's bytes; where the name of its file is known, its `plan_id` must be that name."""
    plan_hash = sha256(content).hexdigest()
    bare = front_matter.parse(content)
    if bare.root is None:
        return ParsedPlan(plan_hash, tuple(sorted(bare.findings)), text=bare.text)
    shape = FieldReader()
    told = _read_fields(shape, bare.root, plan_id)
    warn_about_layout(shape, bare.text, bare.root)
    findings = tuple(sorted([*bare.findings, *shape.findings]))
    plan = None if has_error(findings) else Plan(plan_hash=plan_hash, **told)
    return ParsedPlan(plan_hash, findings, plan, bare.text, _top_level_scalars(bare.root))


def _read_fields(shape: FieldReader, root: MappingNode, plan_id: str | None) -> dict[str, Any]:
    for key, _ in root.pairs:
        if key.position.column or (isinstance(key, ScalarNode) and key.quote):
            shape.error(
                key.position, "key", "A key of the head is not at the line's beginning", "Write it there, plainly"
            )
    readers: dict[str, Callable[[YamlNode], Any]] = {
        "kaiza_plan": partial(shape.choice, choices=("1",)),
        "plan_id": partial(_read_plan_id, shape, plan_id),
        "title": shape.text,
        "status": partial(shape.choice, choices=STATUSES),
        "author": shape.text,
        "created": partial(_read_date, shape),
        "approved_by": shape.text_or_null,
        "approved_at": partial(_read_timestamp_or_null, shape),
        "expires": partial(_read_timestamp_or_null, shape),
        "scope": partial(read_scope, shape),
        "limits": partial(_read_limits, shape),
        "phases": partial(_read_phases, shape),
        "policy": partial(_read_policy, shape),
    }
    told = shape.mapping(
        root, {key: partial(_read_on_key_line, shape, root, read) for key, read in readers.items()}, _REQUIRED_KEYS
    )
    told.pop("kaiza_plan", None)
    return told


def _read_on_key_line(shape: FieldReader, root: MappingNode, read: Callable[[YamlNode], Any], node: YamlNode) -> Any:
    """A word stands on its key's own line, where a person looks for it."""
    key = next(key for key, value in root.pairs if value is node)
    if isinstance(node, ScalarNode) and node.position.line != key.position.line:
        shape.error(node.position, "key", "The value is not on its key's line", "Write key: value on one line")
    return read(node)


def _top_level_scalars(root: MappingNode) -> dict[str, ScalarNode]:
    return {
        key.value: value for key, value in root.pairs if isinstance(key, ScalarNode) and isinstance(value, ScalarNode)
    }


def _read_plan_id(shape: FieldReader, expected: str | None, node: YamlNode) -> str | None:
    told = shape.text(node)
    if told is None:
        return None
    if not is_plan_id(told):
        fix = f"Use capitals and digits, then parts after hyphens, at most {MAX_ID_LENGTH}: PLAN-0007-rotate-tokens"
        shape.error(node.position, "plan-id", "The plan_id is not a name that plans have", fix)
    elif expected is not None and told != expected:
        shape.error(node.position, "plan-id", "The plan_id is not the file's name", f"Write plan_id: {expected}")
    return told


def _read_date(shape: FieldReader, node: YamlNode) -> str | None:
    """A day or a moment, for people to read; nothing is decided by it."""
    told = shape.text(node)
    if told is not None and _parse_timestamp(told) is None:
        shape.error(node.position, "time", "This is no date", 'Write it like "2026-11-18T09:00:00Z"')
    return told


def _read_timestamp(shape: FieldReader, node: YamlNode) -> str | None:
    """A moment in UTC with milliseconds, as records have it, so that the two compare as text."""
    told = shape.text(node)
    moment = _parse_timestamp(told) if told else None
    if moment is not None and moment.tzinfo is not None:
        return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    shape.error(node.position, "time", "This is no date with a time and a zone", 'Write it like "2026-11-18T09:00:00Z"')
    return None


def _parse_timestamp(text: str) -> datetime | None:
    """The moment, unless it is none, or one too near the ends of the calendar to be meant."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if 1 < moment.year < MAX_YEAR else None


def _read_timestamp_or_null(shape: FieldReader, node: YamlNode) -> str | None:
    if isinstance(node, ScalarNode) and not node.quote and node.value in {"", "~", "null"}:
        return None
    return _read_timestamp(shape, node)


def _read_limits(shape: FieldReader, node: YamlNode) -> Limits:
    return Limits(**shape.mapping(node, dict.fromkeys(LIMITS, shape.number)))


def _read_policy(shape: FieldReader, node: YamlNode) -> ContentPolicy:
    told = shape.mapping(node, dict.fromkeys(_POLICY_RULES, partial(shape.choice, choices=("refuse", "allow"))))
    if told.get("secrets") == "allow":
        shape.warn(node.position, "secrets-allowed", "The plan lets secrets be written", "Write secrets: refuse")
    chosen = {rule: word == "refuse" for rule, word in told.items()}
    return ContentPolicy(**chosen)


def _read_phases(shape: FieldReader, node: YamlNode) -> tuple[Phase, ...]:
    phases = shape.items(node, partial(_read_phase, shape))
    if len(phases) > MAX_PHASES:
        shape.error(node.position, "too-large", f"There are more than {MAX_PHASES} phases", "Split the plan")
    seen: set[str] = set()
    for phase in phases:
        if phase.phase_id in seen:
            shape.error(node.position, "duplicate-phase", f"The phase {phase.phase_id} stands twice", "Rename one")
        seen.add(phase.phase_id)
    return phases


def _read_phase(shape: FieldReader, node: YamlNode) -> Phase | None:
    readers: dict[str, Callable[[YamlNode], Any]] = {
        "phase_id": partial(_read_phase_id, shape),
        "objective": shape.text,
        "scope": partial(read_phase_scope, shape),
        "verify": lambda value: shape.items(value, partial(_read_command, shape)),
    }
    told = shape.mapping(node, readers, ("phase_id",))
    return Phase(**told) if told.get("phase_id") else None


def _read_phase_id(shape: FieldReader, node: YamlNode) -> str | None:
    told = shape.text(node)
    if told is None or (
        len(told) <= _MAX_PHASE_ID and told.isascii() and told.replace("_", "").replace("-", "").isalnum()
    ):
        return told
    shape.error(node.position, "phase-id", "The phase_id is not a name", "Use letters, digits, - and _: PHASE_1")
    return None


def _read_command(shape: FieldReader, node: YamlNode) -> tuple[str, ...] | None:
    """A command as its words; one that is a single text would need a shell."""
    if not isinstance(node, SequenceNode) or not node.items:
        shape.error(node.position, "verify", "A command is a list of words", 'Write ["pytest", "-q"]')
        return None
    return shape.items(node, shape.text)
