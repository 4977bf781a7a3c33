"""Parser for JSON with comments and trailing commas that keeps the source position of every value."""

import json
import re
from dataclasses import dataclass
from typing import Any

from kaiza.store.clients.client import ConfigError

MAX_DEPTH = 100  # the parser recurses
_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*+"')
_LITERAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A value spelled as `text[start:end]`; the children of an object or array are in source order."""

    value: Any
    start: int
    end: int
    children: tuple["JsonChild", ...] = ()


@dataclass(frozen=True, slots=True)
class JsonChild:
    """A member of an object, or an item of an array (no key); `start` is that of the key."""

    key: str | None
    start: int
    node: JsonNode


def parse(text: str) -> JsonNode:
    """Parse a whole document; a byte order mark is skipped. ConfigError with the line of a syntax error."""
    reader = _Parser(text)
    root = reader.parse_value(skip_space(text, 1 if text.startswith("\ufeff") else 0), 0)
    end = skip_space(text, root.end)
    if end != len(text):
        raise reader.error_at(end, "Unexpected text after the end of the document")
    return root


def skip_space(text: str, position: int) -> int:
    """Position after white space and comments."""
    match = _SPACE.match(text, position)
    return match.end() if match else position


def line_number(text: str, position: int) -> int:
    """Line number of a position, from 1."""
    return text.count("\n", 0, position) + 1


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text

    def error_at(self, position: int, sentence: str) -> ConfigError:
        return ConfigError(sentence, line_number(self._text, position))

    def parse_value(self, position: int, depth: int) -> JsonNode:
        if depth > MAX_DEPTH:
            raise self.error_at(position, "The document is nested too deeply")
        opening = self._text[position : position + 1]
        if opening == "{":
            children, end = self._parse_children(position, "}", depth)
            return JsonNode({child.key: child.node.value for child in children}, position, end, children)
        if opening == "[":
            children, end = self._parse_children(position, "]", depth)
            return JsonNode([child.node.value for child in children], position, end, children)
        return self._parse_scalar(position)

    def _parse_scalar(self, position: int) -> JsonNode:
        match = _STRING.match(self._text, position) or _LITERAL.match(self._text, position)
        if match is None:
            raise self.error_at(position, "A JSON value is expected here")
        try:
            return JsonNode(json.loads(match[0]), position, match.end())
        except ValueError as error:
            raise self.error_at(position, "This is not a valid JSON value") from error

    def _parse_children(self, position: int, closing: str, depth: int) -> tuple[tuple[JsonChild, ...], int]:
        children: list[JsonChild] = []
        position = skip_space(self._text, position + 1)
        while self._text[position : position + 1] != closing:
            children.append(self._parse_child(position, depth, named=closing == "}"))
            position = skip_space(self._text, children[-1].node.end)
            if self._text[position : position + 1] == ",":
                position = skip_space(self._text, position + 1)
            elif self._text[position : position + 1] != closing:
                raise self.error_at(position, f"A comma or {closing} is expected here")
        return tuple(children), position + 1

    def _parse_child(self, position: int, depth: int, *, named: bool) -> JsonChild:
        if not named:
            return JsonChild(None, position, self.parse_value(position, depth + 1))
        if self._text[position : position + 1] != '"':
            raise self.error_at(position, "A name in double quotes is expected here")
        key = self._parse_scalar(position)
        colon = skip_space(self._text, key.end)
        if self._text[colon : colon + 1] != ":":
            raise self.error_at(colon, "A colon is expected here")
        return JsonChild(key.value, position, self.parse_value(skip_space(self._text, colon + 1), depth + 1))
