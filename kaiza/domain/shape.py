"""The kinds of value a plan's head may hold; what is of another kind becomes a finding, and reading goes on."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from kaiza.domain.finding import ERROR, WARNING, Finding
from kaiza.domain.name_folding import skeleton
from kaiza.domain.words import Items, Keys, Node, Place, Word

LONGEST_TEXT = 500
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_NUMBER = re.compile(r"0|[1-9][0-9]{0,14}")
_SAMPLES = {
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


class Shape:
    """Collects findings while nodes become plain values; None stands for what could not be read."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def error(self, place: Place, rule: str, message: str, fix: str) -> None:
        """Take in a finding that takes the plan's effect away."""
        self.findings.append(Finding(place.line, place.column, ERROR, rule, message, fix))

    def warn(self, place: Place, rule: str, message: str, fix: str) -> None:
        """Take in a finding that the person who decides should see."""
        self.findings.append(Finding(place.line, place.column, WARNING, rule, message, fix))

    def keys(
        self, node: Node, known: Mapping[str, Callable[[Node], Any]], required: Sequence[str] = ()
    ) -> dict[str, Any]:
        """What each known key holds, read by its own reader."""
        if not isinstance(node, Keys):
            self.error(node.place, "type", "Keys are expected here", f"Write {', '.join(known)}")
            return {}
        told: dict[str, Any] = {}
        for key, value in node.pairs:
            name = self._name(key, known)
            if name in told:
                self.error(key.place, "duplicate-key", f"The key {name} stands twice", "Keep one of them")
            elif name is not None:
                told[name] = known[name](value)
        for name in required:
            if name not in told:
                self.error(node.place, "missing-key", f"The key {name} is missing", _to_add(name))
        return told

    def _name(self, key: Node, known: Collection[str]) -> str | None:
        if not isinstance(key, Word) or not key.one_line:
            self.error(key.place, "key", "A key is one word", f"Use one of {', '.join(known)}")
        elif key.value in known:
            return key.value
        elif key.value == "<<":
            self.error(key.place, "merge-key", "The head holds a merge key", "Write the values out")
        else:
            self._unknown(key, known)
        return None

    def _unknown(self, key: Word, known: Collection[str]) -> None:
        alike = next((name for name in known if skeleton(name) == skeleton(key.value)), None)
        if alike:
            self.error(key.place, "key-spelling", f"A key looks like {alike} and is not", f"Write {alike}")
        else:
            message = "A key is not known" if len(key.value) > LONGEST_TEXT else f"The key {key.value!a} is not known"
            self.error(key.place, "unknown-key", message, f"Use one of {', '.join(known)}")

    def items(self, node: Node, read: Callable[[Node], T | None]) -> tuple[T, ...]:
        """What the list's members come to; those that cannot be read are left out."""
        if not isinstance(node, Items):
            self.error(node.place, "type", "A list is expected here", "Write it in brackets, also a single one")
            return ()
        return tuple(value for value in map(read, node.items) if value is not None)

    def text(self, node: Node) -> str | None:
        """Free text on one line."""
        if not isinstance(node, Word) or not node.one_line:
            self.error(node.place, "type", "Text on one line is expected here", "Write it on one line")
        elif not node.value.strip() or (not node.quote and node.value in _NULL):
            self.error(node.place, "empty", "The text is empty", "Write something")
        elif len(node.value) > LONGEST_TEXT:
            self.error(node.place, "too-long", "The text is too long", f"Use at most {LONGEST_TEXT} characters")
        else:
            return node.value
        return None

    def text_or_null(self, node: Node) -> str | None:
        """Free text, or nothing yet."""
        if isinstance(node, Word) and not node.quote and node.value in _NULL:
            return None
        return self.text(node)

    def one_of(self, node: Node, choices: Collection[str]) -> str | None:
        """One of a few words, spelled as they are."""
        if isinstance(node, Word) and node.one_line and node.value in choices:
            return node.value
        self.error(
            node.place, "value", "This word is not one of those that may stand here", f"Use {', '.join(choices)}"
        )
        return None

    def number(self, node: Node) -> int | None:
        """A whole number from 0, in plain digits."""
        if isinstance(node, Word) and not node.quote and _NUMBER.fullmatch(node.value):
            return int(node.value)
        self.error(node.place, "type", "A whole number is expected here", "Write it in plain digits, such as 12")
        return None


def _to_add(name: str) -> str:
    sample = _SAMPLES.get(name)
    return f"Add {name}" if sample is None else f"Add a line such as {name}: {sample}"
