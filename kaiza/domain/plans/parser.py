"""Strict parser of plan files: bytes to a plan, or to the findings that say why they are not valid.

A person approves a plan by reading it, so everything that could be read differently is an error, and everything that is
easily overlooked is a warning. One error makes the whole plan invalid.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any

from kaiza.domain.finding import ERROR, Finding, has_error
from kaiza.domain.plans import front_matter
from kaiza.domain.plans.field_types import FieldReader
from kaiza.domain.plans.plan import LIMITS, MAX_ID_LENGTH, STATUSES, ContentPolicy, Limits, Phase, Plan, is_plan_id
from kaiza.domain.plans.scope_parser import read_scope
from kaiza.domain.plans.yaml_tree import MappingNode, ScalarNode, SequenceNode, YamlNode
from kaiza.domain.timestamps import format_timestamp

MAX_LINE_COLUMNS = 120
MAX_GAP_LINES = 10
"""Lines without a value that may precede a line of the scope."""


def _warn_about_layout(reader: FieldReader, text: str, root: MappingNode) -> None:
    """Warn about each line of a scope that is easily overlooked."""
    by_line: dict[int, list[tuple[ScalarNode, bool]]] = {}
    for scalar, in_scope in _iter_scalars(root, in_scope=False):
        by_line.setdefault(scalar.position.line, []).append((scalar, in_scope))
    lines, previous = text.split("\n"), 0
    for number, scalars in by_line.items():
        gap, previous = number - previous - 1, number
        if not any(in_scope for _, in_scope in scalars):
            continue
        line, position = lines[number].removesuffix("\r"), scalars[0][0].position
        if len(line) > MAX_LINE_COLUMNS:
            message = f"A line of the scope is longer than {MAX_LINE_COLUMNS} columns"
            reader.add_warning(position, "long-line", message, "Break it, so that all of it is visible")
        if gap > MAX_GAP_LINES:
            message = f"There are {gap} lines without a value before this line of the scope"
            reader.add_warning(position, "far-apart", message, "Remove them, so that the whole scope is visible")
        if any("**" in scalar.value for scalar, _ in scalars) and "#" in line[scalars[-1][0].end.column :]:
            message = "A comment follows a pattern with ** on the same line"
            reader.add_warning(position, "comment-beside", message, "Move the comment to the line above, or remove it")


def _iter_scalars(node: YamlNode, *, in_scope: bool) -> Iterator[tuple[ScalarNode, bool]]:
    if isinstance(node, ScalarNode):
        yield node, in_scope
    elif isinstance(node, SequenceNode):
        for item in node.items:
            yield from _iter_scalars(item, in_scope=in_scope)
    else:
        for key, value in node.pairs:
            in_value = in_scope or (isinstance(key, ScalarNode) and key.value == "scope")
            yield from _iter_scalars(key, in_scope=in_value)
            yield from _iter_scalars(value, in_scope=in_value)


MAX_PHASES = 50
MAX_YEAR = 9999
_REQUIRED_KEYS = ("kaiza_plan", "plan_id", "title", "status", "author", "created", "scope")
_APPROVAL_KEYS = frozenset({"status", "approved_by", "approved_at"})
_POLICY_RULES = ("secrets", "stubs", "rust")
_MAX_PHASE_ID = 64
_TIME_FIX = 'Write it like "2026-11-18T09:00:00Z"'


@dataclass(frozen=True, slots=True)
class ParsedPlan:
    """Result of parsing a plan file. `plan` is None if any finding is an error."""

    plan_hash: str
    findings: tuple[Finding, ...]
    plan: Plan | None = None
    text: str = ""
    scalars: Mapping[str, ScalarNode] = field(default_factory=dict)
    """Scalar values of the top-level keys."""
    body_hash: str | None = None
    """Hash of a valid plan without its approval: the same for a draft and for the plan that a person made of it."""

    @property
    def title(self) -> str:
        """The title, or "" if it could not be read; for lists, also of invalid plans."""
        return self.scalars["title"].value if "title" in self.scalars else ""

    @property
    def first_error(self) -> str | None:
        """The first error in one sentence, for lists; None if there is none."""
        error = next((finding for finding in self.findings if finding.severity == ERROR), None)
        if error is None:
            return None
        status = self.scalars.get("status")
        is_status = status is not None and error.line == status.position.line
        where = "its status" if is_status else f"line {error.line + 1}"
        return f"{where}: {error.message[0].lower()}{error.message[1:]}; {error.fix[0].lower()}{error.fix[1:]}"


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan file as stored: id from its name, bytes, and the parse result."""

    plan_id: str
    content: bytes
    parsed: ParsedPlan


def parse(content: bytes, plan_id: str | None = None) -> ParsedPlan:
    """Parse a plan's bytes. If `plan_id` is given, the plan's own id must be equal to it."""
    plan_hash = sha256(content).hexdigest()
    head = front_matter.parse(content)
    if head.root is None:
        return ParsedPlan(plan_hash, tuple(sorted(head.findings)), text=head.text)
    reader = FieldReader()
    fields = _read_fields(reader, head.root, plan_id)
    _warn_about_layout(reader, head.text, head.root)
    findings = tuple(sorted([*head.findings, *reader.findings]))
    plan = None if has_error(findings) else Plan(plan_hash=plan_hash, **fields)
    body_hash = _hash_body(head.root, head.prose) if plan else None
    scalars = {
        key.value: value
        for key, value in head.root.pairs
        if isinstance(key, ScalarNode) and isinstance(value, ScalarNode)
    }
    return ParsedPlan(plan_hash, findings, plan, head.text, scalars, body_hash)


def _hash_body(root: MappingNode, prose: str) -> str:
    """Hash of a valid plan's front matter without status and approval, and of the text below it."""
    head = {name: value for name, value in _to_json(root).items() if name not in _APPROVAL_KEYS}
    # Values, not bytes: an editor or a formatter may change quotes, line ends and trailing blanks.
    lines = [line.rstrip() for line in prose.replace("\r\n", "\n").split("\n")]
    body = {"head": head, "prose": "\n".join(lines).strip("\n")}
    return sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _to_json(node: YamlNode) -> Any:
    if isinstance(node, ScalarNode):
        return node.value
    if isinstance(node, MappingNode):
        return {_to_json(key): _to_json(value) for key, value in node.pairs}
    return [_to_json(item) for item in node.items]


def _read_fields(reader: FieldReader, root: MappingNode, plan_id: str | None) -> dict[str, Any]:
    # The approval edits and the people who review look for keys at the start of a line.
    for key, value in root.pairs:
        if key.position.column or (isinstance(key, ScalarNode) and key.quote):
            reader.add_error(
                key.position, "key", "A top-level key is indented or quoted", "Write it unquoted at the start of a line"
            )
        # A person looks for the value there.
        if isinstance(value, ScalarNode) and value.position.line != key.position.line:
            reader.add_error(
                value.position, "key", "The value is not on its key's line", "Write key: value on one line"
            )
    readers: dict[str, Callable[[YamlNode], Any]] = {
        "kaiza_plan": partial(reader.read_choice, choices=("1",)),
        "plan_id": partial(_read_plan_id, reader, plan_id),
        "title": reader.read_text,
        "status": partial(reader.read_choice, choices=STATUSES),
        "author": reader.read_text,
        "created": partial(_read_date, reader),
        "approved_by": reader.read_text_or_null,
        "approved_at": partial(_read_timestamp, reader),
        "expires": partial(_read_timestamp, reader),
        "scope": partial(read_scope, reader),
        "limits": lambda node: Limits(**reader.read_mapping(node, dict.fromkeys(LIMITS, reader.read_number))),
        "phases": partial(_read_phases, reader),
        "policy": partial(_read_policy, reader),
    }
    fields = reader.read_mapping(root, readers, _REQUIRED_KEYS)
    fields.pop("kaiza_plan", None)
    return fields


def _read_plan_id(reader: FieldReader, expected: str | None, node: YamlNode) -> str | None:
    plan_id = reader.read_text(node)
    if plan_id is None:
        return None
    if not is_plan_id(plan_id):
        fix = f"Use capitals, then parts after hyphens, such as PLAN-0007-rotate-tokens, at most {MAX_ID_LENGTH}"
        reader.add_error(node.position, "plan-id", "The plan_id is not a valid plan id", fix)
    elif expected is not None and plan_id != expected:
        message = "The plan_id differs from the file's name"
        reader.add_error(node.position, "plan-id", message, f"Write plan_id: {expected}")
    return plan_id


def _read_date(reader: FieldReader, node: YamlNode) -> str | None:
    """Read a date or timestamp as it is written. It is only shown, never compared."""
    text = reader.read_text(node)
    if text is not None and _parse_timestamp(text) is None:
        reader.add_error(node.position, "time", "This is not a valid date", _TIME_FIX)
    return text


def _read_timestamp(reader: FieldReader, node: YamlNode) -> str | None:
    """Read a timestamp, or null, as UTC with milliseconds: the form of records, so that the two compare as text."""
    if isinstance(node, ScalarNode) and not node.quote and node.value in {"", "~", "null"}:
        return None
    text = reader.read_text(node)
    timestamp = _parse_timestamp(text) if text else None
    if timestamp is not None and timestamp.tzinfo is not None:
        return format_timestamp(timestamp.astimezone(UTC))
    reader.add_error(node.position, "time", "This is not a date with time and zone", _TIME_FIX)
    return None


def _parse_timestamp(text: str) -> datetime | None:
    try:
        timestamp = datetime.fromisoformat(text)
    except ValueError:
        return None
    # Converting to UTC overflows in the first and last year.
    return timestamp if 1 < timestamp.year < MAX_YEAR else None


def _read_policy(reader: FieldReader, node: YamlNode) -> ContentPolicy:
    read_choice = partial(reader.read_choice, choices=("refuse", "allow"))
    choices = reader.read_mapping(node, dict.fromkeys(_POLICY_RULES, read_choice))
    if choices.get("secrets") == "allow":
        message = "The plan allows secrets in files"
        reader.add_warning(node.position, "secrets-allowed", message, "Write secrets: refuse")
    return ContentPolicy(**{rule: choice == "refuse" for rule, choice in choices.items()})


def _read_phases(reader: FieldReader, node: YamlNode) -> tuple[Phase, ...]:
    phases = reader.read_list(node, partial(_read_phase, reader))
    if len(phases) > MAX_PHASES:
        reader.add_error(node.position, "too-large", f"There are more than {MAX_PHASES} phases", "Split the plan")
    seen: set[str] = set()
    for phase in phases:
        if phase.phase_id in seen:
            reader.add_error(node.position, "duplicate-phase", f"The phase {phase.phase_id} occurs twice", "Rename one")
        seen.add(phase.phase_id)
    return phases


def _read_phase(reader: FieldReader, node: YamlNode) -> Phase | None:
    readers: dict[str, Callable[[YamlNode], Any]] = {
        "phase_id": partial(_read_phase_id, reader),
        "objective": reader.read_text,
        "scope": partial(read_scope, reader, of_phase=True),
        "verify": lambda value: reader.read_list(value, partial(_read_command, reader)),
    }
    fields = reader.read_mapping(node, readers, ("phase_id",))
    return Phase(**fields) if fields.get("phase_id") else None


def _read_phase_id(reader: FieldReader, node: YamlNode) -> str | None:
    phase_id = reader.read_text(node)
    if phase_id is None or (
        len(phase_id) <= _MAX_PHASE_ID and phase_id.isascii() and phase_id.replace("_", "").replace("-", "").isalnum()
    ):
        return phase_id
    fix = f"Use at most {_MAX_PHASE_ID} letters, digits, - and _, such as PHASE_1"
    reader.add_error(node.position, "phase-id", "The phase_id is not valid", fix)
    return None


def _read_command(reader: FieldReader, node: YamlNode) -> tuple[str, ...] | None:
    # A list of arguments, because a single string would need a shell.
    if not isinstance(node, SequenceNode) or not node.items:
        message = "A command must be a list of arguments"
        reader.add_error(node.position, "verify", message, 'Write it like ["pytest", "-q"]')
        return None
    return reader.read_list(node, reader.read_text)
