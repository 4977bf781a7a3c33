"""The kinds of value a plan's head may hold; what is of another kind becomes a finding, and reading goes on."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from kaiza.domain.finding import ERROR, WARNING, Finding
from kaiza.domain.paths.name_folding import skeleton
from kaiza.domain.plans.yaml_tree import MappingNode, ScalarNode, SequenceNode, SourcePosition, YamlNode

MAX_TEXT = 500
_NULL_SPELLINGS = frozenset({"", "~", "null", "Null", "NULL"})
_NUMBER = re.compile(r"0|[1-9][0-9]{0,14}")
_SAMPLE_VALUES = {
    "kaiza_plan": "1",
    "plan_id": "PLAN-0001-rotate-tokens",
    "title": "Rotate session tokens",
    "status": "DRAFT",
    "author": "ANTIGRAVITY",
    "created": '"2026-01-31T09:00:00Z"',
    "scope": '{modify: ["src/a.py"], create: ["src/new/*.py"]}',
}
"""What a key that must be there may say, so that who has never seen a plan can write one."""

T = TypeVar("T")


class FieldReader:
    """Collects findings while nodes become plain values; None stands for what could not be read."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def error(self, place: SourcePosition, rule: str, message: str, fix: str) -> None:
        """Take in a finding that takes the plan's effect away."""
        self.findings.append(Finding(place.line, place.column, ERROR, rule, message, fix))

    def warn(self, place: SourcePosition, rule: str, message: str, fix: str) -> None:
        """Take in a finding that the person who decides should see."""
        self.findings.append(Finding(place.line, place.column, WARNING, rule, message, fix))

    def mapping(
        self, node: YamlNode, known: Mapping[str, Callable[[YamlNode], Any]], required: Sequence[str] = ()
    ) -> dict[str, Any]:
        """What each known key holds, read by its own reader."""
        if not isinstance(node, MappingNode):
            self.error(node.position, "type", "Keys are expected here", f"Write {', '.join(known)}")
            return {}
        told: dict[str, Any] = {}
        for key, value in node.pairs:
            name = self._read_key(key, known)
            if name in told:
                self.error(key.position, "duplicate-key", f"The key {name} stands twice", "Keep one of them")
            elif name is not None:
                told[name] = known[name](value)
        for name in required:
            if name not in told:
                self.error(node.position, "missing-key", f"The key {name} is missing", _missing_key_fix(name))
        return told

    def _read_key(self, key: YamlNode, known: Collection[str]) -> str | None:
        if not isinstance(key, ScalarNode) or not key.is_one_line:
            self.error(key.position, "key", "A key is one word", f"Use one of {', '.join(known)}")
        elif key.value in known:
            return key.value
        elif key.value == "<<":
            self.error(key.position, "merge-key", "The head holds a merge key", "Write the values out")
        else:
            self._report_unknown_key(key, known)
        return None

    def _report_unknown_key(self, key: ScalarNode, known: Collection[str]) -> None:
        alike = next((name for name in known if skeleton(name) == skeleton(key.value)), None)
        if alike:
            self.error(key.position, "key-spelling", f"A key looks like {alike} and is not", f"Write {alike}")
        else:
            message = "A key is not known" if len(key.value) > MAX_TEXT else f"The key {key.value!a} is not known"
            self.error(key.position, "unknown-key", message, f"Use one of {', '.join(known)}")

    def items(self, node: YamlNode, read: Callable[[YamlNode], T | None]) -> tuple[T, ...]:
        """What the list's members come to; those that cannot be read are left out."""
        if not isinstance(node, SequenceNode):
            self.error(node.position, "type", "A list is expected here", "Write it in brackets, also a single one")
            return ()
        return tuple(value for value in map(read, node.items) if value is not None)

    def text(self, node: YamlNode) -> str | None:
        """Free text on one line."""
        if not isinstance(node, ScalarNode) or not node.is_one_line:
            self.error(node.position, "type", "Text on one line is expected here", "Write it on one line")
        elif not node.value.strip() or (not node.quote and node.value in _NULL_SPELLINGS):
            self.error(node.position, "empty", "The text is empty", "Write something")
        elif len(node.value) > MAX_TEXT:
            self.error(node.position, "too-long", "The text is too long", f"Use at most {MAX_TEXT} characters")
        else:
            return node.value
        return None

    def text_or_null(self, node: YamlNode) -> str | None:
        """Free text, or nothing yet."""
        if isinstance(node, ScalarNode) and not node.quote and node.value in _NULL_SPELLINGS:
            return None
        return self.text(node)

    def choice(self, node: YamlNode, choices: Collection[str]) -> str | None:
        """One of a few words, spelled as they are."""
        if isinstance(node, ScalarNode) and node.is_one_line and node.value in choices:
            return node.value
        self.error(
            node.position, "value", "This word is not one of those that may stand here", f"Use {', '.join(choices)}"
        )
        return None

    def number(self, node: YamlNode) -> int | None:
        """A whole number from 0, in plain digits."""
        if isinstance(node, ScalarNode) and not node.quote and _NUMBER.fullmatch(node.value):
            return int(node.value)
        self.error(node.position, "type", "A whole number is expected here", "Write it in plain digits, such as 12")
        return None


def _missing_key_fix(name: str) -> str:
    sample = _SAMPLE_VALUES.get(name)
    return f"Add {name}" if sample is None else f"Add a line such as {name}: {sample}"
