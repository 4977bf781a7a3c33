"""YAML events to a tree of nodes with source positions. Does not resolve types.

Anchors, aliases and tags are rejected; size and depth are bounded while events are read, before anything is built.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_NODES = 4000
MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """Line and column, counted from 0, and the character index in the file."""

    line: int
    column: int
    index: int


class ScalarNode(NamedTuple):
    """A scalar: its value, its quote character or block indicator, and its start and end."""

    value: str
    quote: str
    position: SourcePosition
    end: SourcePosition

    @property
    def is_one_line(self) -> bool:
        """Whether it is a plain or quoted scalar on a single line."""
        return self.position.line == self.end.line and self.quote in {"", "'", '"'}


class SequenceNode(NamedTuple):
    """A sequence."""

    items: "tuple[YamlNode, ...]"
    position: SourcePosition


class MappingNode(NamedTuple):
    """A mapping with its pairs in order, duplicate keys included."""

    pairs: "tuple[tuple[YamlNode, YamlNode], ...]"
    position: SourcePosition
    is_flow: bool = False


YamlNode = ScalarNode | SequenceNode | MappingNode
ReportFinding = Callable[[SourcePosition, str, str, str], None]
"""Called with position, rule, message and fix."""

FILE_START = SourcePosition(0, 0, 0)


class StopParsing(Exception):  # noqa: N818  control flow, not an error
    """Parsing ended early; a finding says why."""


class YamlTree:
    """Builds the tree from parser events. `to_position` converts the parser's marks."""

    def __init__(
        self, text: str, events: Iterator[Any], to_position: Callable[[Any], SourcePosition], report: ReportFinding
    ) -> None:
        self._text = text
        self._events = events
        self._to_position = to_position
        self._report_finding = report
        self._node_count = 0

    def parse_root(self) -> MappingNode | None:
        """Parse the root, a block mapping. Reports a finding and returns None for anything else."""
        root = None
        for event in self._events:
            kind = type(event).__name__
            if kind in {"StreamStartEvent", "DocumentStartEvent", "DocumentEndEvent", "StreamEndEvent"}:
                continue
            # Continue after the root: a second document must not go unnoticed.
            if root is not None:
                message = "The front matter contains a second document"
                self._reject_event(event, "second-document", message, "Remove it")
            root = self._parse_node(event, 0)
        if isinstance(root, MappingNode) and not root.is_flow:
            return root
        position = root.position if root else FILE_START
        fix = "Write one key on each line, as key: value"
        self._report_finding(position, "head", "The front matter is not a list of keys", fix)
        return None

    def _parse_node(self, event: Any, depth: int) -> YamlNode:
        self._check_event(event, depth)
        kind = type(event).__name__
        start = self._to_position(event.start_mark)
        if kind == "MappingStartEvent":
            children = self._read_children("MappingEndEvent", depth)
            pairs = (
                (key, self._place_empty_value(key, value))
                for key, value in zip(children[::2], children[1::2], strict=True)
            )
            return MappingNode(tuple(pairs), start, bool(event.flow_style))
        if kind == "SequenceStartEvent":
            return SequenceNode(tuple(self._read_children("SequenceEndEvent", depth)), start)
        end = self._to_position(event.end_mark)
        raw, value = self._text[start.index : end.index], event.value
        # An escape such as "\x41PPROVED" reads differently from what it means.
        if event.style == '"' and re.search(r'\\[^"\\]', raw):
            self._report_finding(
                start, "escape", "A quoted value contains an escape", "Write the characters themselves"
            )
            # An escape can make a lone surrogate, which no JSON can carry, and the title is shown all the same.
            value = value.encode(errors="replace").decode()
        return ScalarNode(value, event.style or "", start, end)

    def _place_empty_value(self, key: YamlNode, value: YamlNode) -> YamlNode:
        """Position of an omitted value: after its key's colon, not at the next token where the parser puts it."""
        if (
            not isinstance(key, ScalarNode)
            or not isinstance(value, ScalarNode)
            or value.position.index < value.end.index
        ):
            return value
        colon = self._text.find(":", key.end.index, value.position.index)
        if colon < 0:
            return value
        position = SourcePosition(key.end.line, key.end.column + colon + 1 - key.end.index, colon + 1)
        return ScalarNode("", "", position, position)

    def _read_children(self, end_event: str, depth: int) -> list[YamlNode]:
        children: list[YamlNode] = []
        for event in self._events:
            if type(event).__name__ == end_event:
                return children
            children.append(self._parse_node(event, depth + 1))
        raise StopParsing

    def _check_event(self, event: Any, depth: int) -> None:
        self._node_count += 1
        if self._node_count > MAX_NODES:
            message = f"The front matter has more than {MAX_NODES} values"
            self._reject_event(event, "too-large", message, "List fewer paths")
        if depth > MAX_DEPTH:
            self._reject_event(event, "too-deep", "The front matter is nested too deeply", "Use only known keys")
        if type(event).__name__ == "AliasEvent":
            self._reject_event(event, "alias", "The front matter contains an alias", "Write the value out")
        if event.anchor:
            self._report_event(event, "anchor", "The front matter contains an anchor", "Remove it")
        if event.tag:
            self._report_event(event, "tag", "The front matter contains a tag", "Remove it")

    def _report_event(self, event: Any, rule: str, message: str, fix: str) -> None:
        self._report_finding(self._to_position(event.start_mark), rule, message, fix)

    def _reject_event(self, event: Any, rule: str, message: str, fix: str) -> None:
        self._report_event(event, rule, message, fix)
        raise StopParsing
