"""JSON as editors keep it, comments and trailing commas allowed, read with the place of everything in it."""

import json
import re
from dataclasses import dataclass
from typing import Any

from kaiza.store.clients.fault import ConfigFault

DEEPEST = 100
_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*+"')
_WORD = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands: `text[start:end]`. An object's or array's children are in the order of the text."""

    value: Any
    start: int
    end: int
    children: tuple["Child", ...] = ()


@dataclass(frozen=True, slots=True)
class Child:
    """A member of an object, or with no key an item of an array; it begins where its key does."""

    key: str | None
    start: int
    node: Node


def read(text: str) -> Node:
    """The whole document; ConfigFault names the line it stumbles over. A byte order mark is passed over."""
    reader = _Reader(text)
    root = reader.value(skip(text, 1 if text.startswith("\ufeff") else 0), 0)
    end = skip(text, root.end)
    if end != len(text):
        raise reader.fault(end, "There is something after the end of the document")
    return root


def skip(text: str, at: int) -> int:
    """Where the next thing begins that is neither blank nor comment."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def line_of(text: str, at: int) -> int:
    """The line of a place, from 1."""
    return text.count("\n", 0, at) + 1


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def fault(self, at: int, sentence: str) -> ConfigFault:
        return ConfigFault(sentence, line_of(self._text, at))

    def value(self, at: int, depth: int) -> Node:
        if depth > DEEPEST:
            raise self.fault(at, "This is nested too deeply")
        opening = self._text[at : at + 1]
        if opening == "{":
            children, end = self._children(at, "}", depth)
            return Node({child.key: child.node.value for child in children}, at, end, children)
        if opening == "[":
            children, end = self._children(at, "]", depth)
            return Node([child.node.value for child in children], at, end, children)
        return self._plain(at)

    def _plain(self, at: int) -> Node:
        found = _STRING.match(self._text, at) or _WORD.match(self._text, at)
        if found is None:
            raise self.fault(at, "A value is missing here, or is no JSON")
        try:
            return Node(json.loads(found[0]), at, found.end())
        except ValueError as error:
            raise self.fault(at, "This is no JSON value") from error

    def _children(self, at: int, closing: str, depth: int) -> tuple[tuple[Child, ...], int]:
        children: list[Child] = []
        at = skip(self._text, at + 1)
        while self._text[at : at + 1] != closing:
            children.append(self._child(at, depth, named=closing == "}"))
            at = skip(self._text, children[-1].node.end)
            if self._text[at : at + 1] == ",":
                at = skip(self._text, at + 1)
            elif self._text[at : at + 1] != closing:
                raise self.fault(at, f"A comma or {closing} is missing here")
        return tuple(children), at + 1

    def _child(self, at: int, depth: int, *, named: bool) -> Child:
        if not named:
            return Child(None, at, self.value(at, depth + 1))
        if self._text[at : at + 1] != '"':
            raise self.fault(at, "A name in quotes is missing here")
        key = self._plain(at)
        colon = skip(self._text, key.end)
        if self._text[colon : colon + 1] != ":":
            raise self.fault(colon, "A colon is missing here")
        return Child(key.value, at, self.value(skip(self._text, colon + 1), depth + 1))
