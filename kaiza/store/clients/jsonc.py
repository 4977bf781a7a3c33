"""JSON as editors keep it, comments and trailing commas allowed, read with the place of everything in it."""

import json
import re
from dataclasses import dataclass
from typing import Any

from kaiza.store.clients.errors import ConfigError

MAX_DEPTH = 100
_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*+"')
_LITERAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A value and where it stands: `text[start:end]`. An object's or array's children are in the order of the text."""

    value: Any
    start: int
    end: int
    children: tuple["JsonChild", ...] = ()


@dataclass(frozen=True, slots=True)
class JsonChild:
    """A member of an object, or with no key an item of an array; it begins where its key does."""

    key: str | None
    start: int
    node: JsonNode


def parse(text: str) -> JsonNode:
    """The whole document; ConfigFault names the line it stumbles over. A byte order mark is passed over."""
    reader = _Parser(text)
    root = reader.parse_value(skip_space(text, 1 if text.startswith("\ufeff") else 0), 0)
    end = skip_space(text, root.end)
    if end != len(text):
        raise reader.error_at(end, "There is something after the end of the document")
    return root


def skip_space(text: str, at: int) -> int:
    """Where the next thing begins that is neither blank nor comment."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def line_number(text: str, at: int) -> int:
    """The line of a place, from 1."""
    return text.count("\n", 0, at) + 1


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text

    def error_at(self, at: int, sentence: str) -> ConfigError:
        return ConfigError(sentence, line_number(self._text, at))

    def parse_value(self, at: int, depth: int) -> JsonNode:
        if depth > MAX_DEPTH:
            raise self.error_at(at, "This is nested too deeply")
        opening = self._text[at : at + 1]
        if opening == "{":
            children, end = self._parse_children(at, "}", depth)
            return JsonNode({child.key: child.node.value for child in children}, at, end, children)
        if opening == "[":
            children, end = self._parse_children(at, "]", depth)
            return JsonNode([child.node.value for child in children], at, end, children)
        return self._parse_scalar(at)

    def _parse_scalar(self, at: int) -> JsonNode:
        found = _STRING.match(self._text, at) or _LITERAL.match(self._text, at)
        if found is None:
            raise self.error_at(at, "A value is missing here, or is no JSON")
        try:
            return JsonNode(json.loads(found[0]), at, found.end())
        except ValueError as error:
            raise self.error_at(at, "This is no JSON value") from error

    def _parse_children(self, at: int, closing: str, depth: int) -> tuple[tuple[JsonChild, ...], int]:
        children: list[JsonChild] = []
        at = skip_space(self._text, at + 1)
        while self._text[at : at + 1] != closing:
            children.append(self._parse_child(at, depth, named=closing == "}"))
            at = skip_space(self._text, children[-1].node.end)
            if self._text[at : at + 1] == ",":
                at = skip_space(self._text, at + 1)
            elif self._text[at : at + 1] != closing:
                raise self.error_at(at, f"A comma or {closing} is missing here")
        return tuple(children), at + 1

    def _parse_child(self, at: int, depth: int, *, named: bool) -> JsonChild:
        if not named:
            return JsonChild(None, at, self.parse_value(at, depth + 1))
        if self._text[at : at + 1] != '"':
            raise self.error_at(at, "A name in quotes is missing here")
        key = self._parse_scalar(at)
        colon = skip_space(self._text, key.end)
        if self._text[colon : colon + 1] != ":":
            raise self.error_at(colon, "A colon is missing here")
        return JsonChild(key.value, at, self.parse_value(skip_space(self._text, colon + 1), depth + 1))
