"""The words of a plan's head as a tree, each with its place; events that plans do not have are refused.

Nothing is understood here: no types, no names. Events are taken one by one, so that no text is deep or long enough
to cost more than its first few thousand words.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_NODES = 4000
MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """Where something stands: line and column from 0, and the character counted from the file's beginning."""

    line: int
    column: int
    index: int


class ScalarNode(NamedTuple):
    """A scalar: what it says, how it was quoted, and from where to where it stands."""

    value: str
    quote: str
    position: SourcePosition
    end: SourcePosition

    @property
    def is_one_line(self) -> bool:
        """Whether it is written on a single line, plainly or in quotes."""
        return self.position.line == self.end.line and self.quote in {"", "'", '"'}


class SequenceNode(NamedTuple):
    """A list."""

    items: "tuple[YamlNode, ...]"
    position: SourcePosition


class MappingNode(NamedTuple):
    """A mapping, with its keys as they were written, doubles included."""

    pairs: "tuple[tuple[YamlNode, YamlNode], ...]"
    position: SourcePosition
    is_flow: bool = False


YamlNode = ScalarNode | SequenceNode | MappingNode
ReportFinding = Callable[[SourcePosition, str, str, str], None]
"""How a finding is handed in: place, rule, message, fix."""

FILE_START = SourcePosition(0, 0, 0)


class StopParsing(Exception):  # noqa: N818  it is no error but an end: a finding says why
    """The rest is not worth reading."""


class YamlTree:
    """The tree that a stream of events tells of, refused where an event is of a kind that plans do not have."""

    def __init__(
        self, text: str, events: Iterator[Any], put: Callable[[Any], SourcePosition], report: ReportFinding
    ) -> None:
        self._text = text
        self._events = events
        self._position_of = put
        self._report_finding = report
        self._node_count = 0

    def root(self) -> MappingNode | None:
        """The one mapping that the head is."""
        root = None
        for event in self._events:
            kind = type(event).__name__
            if kind in {"StreamStartEvent", "DocumentStartEvent", "DocumentEndEvent", "StreamEndEvent"}:
                continue
            if root is not None:
                self._reject_event(event, "second-document", "The head holds a second document", "Keep to one")
            root = self._parse_node(event, 0)
        if isinstance(root, MappingNode) and not root.is_flow:
            return root
        where = root.position if root else FILE_START
        self._report_finding(where, "head", "The head is no list of keys", "Write one key on each line, as key: value")
        return None

    def _parse_node(self, event: Any, depth: int) -> YamlNode:
        self._check_event(event, depth)
        kind = type(event).__name__
        place = self._position_of(event.start_mark)
        if kind == "MappingStartEvent":
            children = self._read_children("MappingEndEvent", depth)
            pairs = (
                (key, self._place_empty_value(key, value))
                for key, value in zip(children[::2], children[1::2], strict=True)
            )
            return MappingNode(tuple(pairs), place, bool(event.flow_style))
        if kind == "SequenceStartEvent":
            return SequenceNode(tuple(self._read_children("SequenceEndEvent", depth)), place)
        end = self._position_of(event.end_mark)
        raw = self._text[place.index : end.index]
        if event.style == '"' and re.search(r'\\[^"\\]', raw):
            self._report_finding(place, "escape", "A quoted word holds an escape", "Write the characters themselves")
        return ScalarNode(event.value, event.style or "", place, end)

    def _place_empty_value(self, key: YamlNode, value: YamlNode) -> YamlNode:
        """A value left out stands right behind its key's colon, not where the next word begins."""
        if (
            not isinstance(key, ScalarNode)
            or not isinstance(value, ScalarNode)
            or value.position.index < value.end.index
        ):
            return value
        colon = self._text.find(":", key.end.index, value.position.index)
        if colon < 0:
            return value
        place = SourcePosition(key.end.line, key.end.column + colon + 1 - key.end.index, colon + 1)
        return ScalarNode("", "", place, place)

    def _read_children(self, last: str, depth: int) -> list[YamlNode]:
        children: list[YamlNode] = []
        for event in self._events:
            if type(event).__name__ == last:
                return children
            children.append(self._parse_node(event, depth + 1))
        raise StopParsing

    def _check_event(self, event: Any, depth: int) -> None:
        self._node_count += 1
        if self._node_count > MAX_NODES:
            self._reject_event(event, "too-large", f"The head has more than {MAX_NODES} words", "Name fewer paths")
        if depth > MAX_DEPTH:
            self._reject_event(event, "too-deep", "The head is nested too deeply", "Keep to the keys that plans have")
        if type(event).__name__ == "AliasEvent":
            self._reject_event(event, "alias", "The head refers to an anchor", "Write the value out")
        if event.anchor:
            self._report_event(event, "anchor", "The head sets an anchor", "Remove it, and write each value out")
        if event.tag:
            self._report_event(event, "tag", "The head holds a tag", "Remove it")

    def _report_event(self, event: Any, rule: str, message: str, fix: str) -> None:
        self._report_finding(self._position_of(event.start_mark), rule, message, fix)

    def _reject_event(self, event: Any, rule: str, message: str, fix: str) -> None:
        self._report_event(event, rule, message, fix)
        raise StopParsing
