"""The words of a plan's head as a tree, each with its place; events that plans do not have are refused.

Nothing is understood here: no types, no names. Events are taken one by one, so that no text is deep or long enough
to cost more than its first few thousand words.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_WORDS = 4000
MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: line and column from 0, and the character counted from the file's beginning."""

    line: int
    column: int
    index: int


class Word(NamedTuple):
    """A scalar: what it says, how it was quoted, and from where to where it stands."""

    value: str
    quote: str
    place: Place
    end: Place

    @property
    def one_line(self) -> bool:
        """Whether it is written on a single line, plainly or in quotes."""
        return self.place.line == self.end.line and self.quote in {"", "'", '"'}


class Items(NamedTuple):
    """A list."""

    items: "tuple[Node, ...]"
    place: Place


class Keys(NamedTuple):
    """A mapping, with its keys as they were written, doubles included."""

    pairs: "tuple[tuple[Node, Node], ...]"
    place: Place
    flow: bool = False


Node = Word | Items | Keys
Report = Callable[[Place, str, str, str], None]
"""How a finding is handed in: place, rule, message, fix."""

START = Place(0, 0, 0)


class Enough(Exception):  # noqa: N818  it is no error but an end: a finding says why
    """The rest is not worth reading."""


class Tree:
    """The tree that a stream of events tells of, refused where an event is of a kind that plans do not have."""

    def __init__(self, text: str, events: Iterator[Any], put: Callable[[Any], Place], report: Report) -> None:
        self._text = text
        self._events = events
        self._put = put
        self._report_at = report
        self._words = 0

    def root(self) -> Keys | None:
        """The one mapping that the head is."""
        root = None
        for event in self._events:
            kind = type(event).__name__
            if kind in {"StreamStartEvent", "DocumentStartEvent", "DocumentEndEvent", "StreamEndEvent"}:
                continue
            if root is not None:
                self._stop(event, "second-document", "The head holds a second document", "Keep to one")
            root = self._node(event, 0)
        if isinstance(root, Keys) and not root.flow:
            return root
        where = root.place if root else START
        self._report_at(where, "head", "The head is no list of keys", "Write one key on each line, as key: value")
        return None

    def _node(self, event: Any, depth: int) -> Node:
        self._refuse(event, depth)
        kind = type(event).__name__
        place = self._put(event.start_mark)
        if kind == "MappingStartEvent":
            children = self._until("MappingEndEvent", depth)
            pairs = ((key, self._placed(key, value)) for key, value in zip(children[::2], children[1::2], strict=True))
            return Keys(tuple(pairs), place, bool(event.flow_style))
        if kind == "SequenceStartEvent":
            return Items(tuple(self._until("SequenceEndEvent", depth)), place)
        end = self._put(event.end_mark)
        raw = self._text[place.index : end.index]
        if event.style == '"' and re.search(r'\\[^"\\]', raw):
            self._report_at(place, "escape", "A quoted word holds an escape", "Write the characters themselves")
        return Word(event.value, event.style or "", place, end)

    def _placed(self, key: Node, value: Node) -> Node:
        """A value left out stands right behind its key's colon, not where the next word begins."""
        if not isinstance(key, Word) or not isinstance(value, Word) or value.place.index < value.end.index:
            return value
        colon = self._text.find(":", key.end.index, value.place.index)
        if colon < 0:
            return value
        place = Place(key.end.line, key.end.column + colon + 1 - key.end.index, colon + 1)
        return Word("", "", place, place)

    def _until(self, last: str, depth: int) -> list[Node]:
        children: list[Node] = []
        for event in self._events:
            if type(event).__name__ == last:
                return children
            children.append(self._node(event, depth + 1))
        raise Enough

    def _refuse(self, event: Any, depth: int) -> None:
        self._words += 1
        if self._words > MAX_WORDS:
            self._stop(event, "too-large", f"The head has more than {MAX_WORDS} words", "Name fewer paths")
        if depth > MAX_DEPTH:
            self._stop(event, "too-deep", "The head is nested too deeply", "Keep to the keys that plans have")
        if type(event).__name__ == "AliasEvent":
            self._stop(event, "alias", "The head refers to an anchor", "Write the value out")
        if event.anchor:
            self._report(event, "anchor", "The head sets an anchor", "Remove it, and write each value out")
        if event.tag:
            self._report(event, "tag", "The head holds a tag", "Remove it")

    def _report(self, event: Any, rule: str, message: str, fix: str) -> None:
        self._report_at(self._put(event.start_mark), rule, message, fix)

    def _stop(self, event: Any, rule: str, message: str, fix: str) -> None:
        self._report(event, rule, message, fix)
        raise Enough
