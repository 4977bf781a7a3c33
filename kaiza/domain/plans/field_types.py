"""Reader of front matter fields: converts YAML nodes to typed values and collects findings instead of raising."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from kaiza.domain.finding import ERROR, WARNING, Finding
from kaiza.domain.paths.confusables import skeleton
from kaiza.domain.plans.yaml_tree import MappingNode, ScalarNode, SequenceNode, SourcePosition, YamlNode

MAX_TEXT = 500
_NULL_SPELLINGS = frozenset({"", "~", "null", "Null", "NULL"})
_NUMBER = re.compile(r"0|[1-9][0-9]{0,14}")
_SAMPLE_VALUES = {
    "kaiza_plan": "1",
    "plan_id": "PLAN-0001-rotate-tokens",
    "title": "Rotate session tokens",
    "status": "DRAFT",
    "author": "planner",
    "created": '"2026-01-31T09:00:00Z"',
    "scope": '{modify: ["src/a.py"], create: ["src/new/*.py"]}',
}
"""Sample values for required keys, shown in the fix of a `missing-key` finding."""

T = TypeVar("T")


class FieldReader:
    """Converts nodes to values and collects findings. A value that cannot be read is None."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def add_error(self, position: SourcePosition, rule: str, message: str, fix: str) -> None:
        """Add a finding that makes the plan invalid."""
        self.findings.append(Finding(position.line, position.column, ERROR, rule, message, fix))

    def add_warning(self, position: SourcePosition, rule: str, message: str, fix: str) -> None:
        """Add a finding for the person who approves."""
        self.findings.append(Finding(position.line, position.column, WARNING, rule, message, fix))

    def read_mapping(
        self, node: YamlNode, known: Mapping[str, Callable[[YamlNode], Any]], required: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Read a mapping; `known` has the reader of each key that is allowed."""
        if not isinstance(node, MappingNode):
            self.add_error(node.position, "type", "Keys are expected here", f"Write {', '.join(known)}")
            return {}
        fields: dict[str, Any] = {}
        for key, value in node.pairs:
            name = self._read_key(key, known)
            if name in fields:
                self.add_error(key.position, "duplicate-key", f"The key {name} occurs twice", "Remove one of them")
            elif name is not None:
                fields[name] = known[name](value)
        for name in required:
            if name not in fields:
                sample = _SAMPLE_VALUES.get(name)
                fix = f"Add {name}" if sample is None else f"Add a line such as {name}: {sample}"
                self.add_error(node.position, "missing-key", f"The key {name} is missing", fix)
        return fields

    def _read_key(self, key: YamlNode, known: Collection[str]) -> str | None:
        if not isinstance(key, ScalarNode) or not key.is_one_line:
            self.add_error(key.position, "key", "The key is not a single word", f"Use one of {', '.join(known)}")
        elif key.value in known:
            return key.value
        elif key.value == "<<":
            fix = "Write the values out"
            self.add_error(key.position, "merge-key", "The front matter contains a merge key", fix)
        else:
            self._report_unknown_key(key, known)
        return None

    def _report_unknown_key(self, key: ScalarNode, known: Collection[str]) -> None:
        lookalike = next((name for name in known if skeleton(name) == skeleton(key.value)), None)
        if lookalike:
            message = f"A key looks like {lookalike} but is spelled differently"
            self.add_error(key.position, "key-spelling", message, f"Write {lookalike}")
        else:
            message = "Unknown key" if len(key.value) > MAX_TEXT else f"Unknown key {key.value!a}"
            self.add_error(key.position, "unknown-key", message, f"Use one of {', '.join(known)}")

    def read_list(self, node: YamlNode, read: Callable[[YamlNode], T | None]) -> tuple[T, ...]:
        """Read a list. Items that cannot be read are left out."""
        if not isinstance(node, SequenceNode):
            fix = "Write it in brackets, even for a single item"
            self.add_error(node.position, "type", "A list is expected here", fix)
            return ()
        return tuple(value for value in map(read, node.items) if value is not None)

    def read_text(self, node: YamlNode) -> str | None:
        """Read free text on one line."""
        if not isinstance(node, ScalarNode) or not node.is_one_line:
            self.add_error(node.position, "type", "Text on one line is expected here", "Write it on one line")
        elif not node.value.strip() or (not node.quote and node.value in _NULL_SPELLINGS):
            self.add_error(node.position, "empty", "The text is empty", "Enter a text")
        elif len(node.value) > MAX_TEXT:
            self.add_error(node.position, "too-long", "The text is too long", f"Use at most {MAX_TEXT} characters")
        else:
            return node.value
        return None

    def read_text_or_null(self, node: YamlNode) -> str | None:
        """Read free text, or null."""
        if isinstance(node, ScalarNode) and not node.quote and node.value in _NULL_SPELLINGS:
            return None
        return self.read_text(node)

    def read_choice(self, node: YamlNode, choices: Collection[str]) -> str | None:
        """Read one of a few words, spelled exactly so."""
        if isinstance(node, ScalarNode) and node.is_one_line and node.value in choices:
            return node.value
        meant = node.value.strip().casefold() if isinstance(node, ScalarNode) else None
        close = next((choice for choice in choices if choice.casefold() == meant), None)
        fix = f"Write {close}" if close else f"Use one of {', '.join(choices)}"
        self.add_error(node.position, "value", "This value is not allowed here", fix)
        return None

    def read_number(self, node: YamlNode) -> int | None:
        """Read a non-negative integer in decimal digits."""
        if isinstance(node, ScalarNode) and not node.quote and _NUMBER.fullmatch(node.value):
            return int(node.value)
        self.add_error(node.position, "type", "A whole number is expected here", "Write it in digits, such as 12")
        return None
