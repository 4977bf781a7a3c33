"""Changes one place of a JSON text and leaves every other byte: comments, order, indentation, line ends.

Each edit is read again before it is given out, and must say exactly what was meant.
"""

import copy
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.store.clients import jsonc
from kaiza.store.clients.errors import ConfigError
from kaiza.store.clients.jsonc import JsonChild, JsonNode

KeyPath = Sequence[str]
_BLANK = " \t\r\n"


def value_at(text: str, path: KeyPath) -> Any:
    """What stands there, or None."""
    node = jsonc.parse(text) if text.strip(_BLANK + "\ufeff") else None
    for key in path:
        found = [child.node for child in node.children if child.key == key] if node else []
        node = found[-1] if found else None
    return node.value if node else None


def set_value(text: str, path: KeyPath, value: Any) -> str:
    """The text in which this value stands there; objects on the way are made, an equal value is left as it is."""
    if not text.strip(_BLANK):
        return json.dumps(_nest_value(path, value), indent=2, ensure_ascii=False) + "\n"
    node, left = _find_deepest(text, path)
    if left:
        done = _append_children(
            text, node, [json.dumps(left[0], ensure_ascii=False) + ": "], [_nest_value(left[1:], value)]
        )
    elif node.value == value:
        return text
    else:
        done = text[: node.start] + _format_value(text, value, _line_indent(text, node.start)) + text[node.end :]
    return _verify_edit(text, done, path, lambda _: value)


def extend_list(text: str, path: KeyPath, items: Sequence[str]) -> str:
    """The text in which the array there has these items, too; what it lacks comes last."""
    node, left = _find_deepest(text, path) if text.strip(_BLANK) else (None, path)
    if node is None or left:
        return set_value(text, path, list(items))
    if not isinstance(node.value, list):
        raise ConfigError(f"{'.'.join(path)} is no list", jsonc.line_number(text, node.start))
    missing = [item for item in items if item not in node.value]
    if not missing:
        return text
    return _verify_edit(
        text, _append_children(text, node, [""] * len(missing), missing), path, lambda there: [*there, *missing]
    )


def remove_member(text: str, path: KeyPath) -> str:
    """The text without the member that stands there, if it does."""
    *way, name = path
    node, left = _find_deepest(text, way)
    if left or not any(child.key == name for child in node.children):
        return text
    done = _remove_child(text, node, lambda child: child.key == name)
    return _verify_edit(text, done, way, lambda there: {key: value for key, value in there.items() if key != name})


def shrink_list(text: str, path: KeyPath, items: Sequence[str]) -> str:
    """The text in which the array there lacks these items."""
    node, left = _find_deepest(text, path)
    if left or not isinstance(node.value, list):
        return text
    done = text
    while (node := _find_deepest(done, path)[0]) and any(child.node.value in items for child in node.children):
        first = next(child for child in node.children if child.node.value in items)
        done = _remove_child(done, node, lambda child, first=first: child is first)  # type: ignore[misc]
    return _verify_edit(text, done, path, lambda there: [item for item in there if item not in items])


def remove_empty(text: str, path: KeyPath, before: str) -> str:
    """The text without the empty containers on this path that the text before did not have."""
    for length in range(len(path), 0, -1):
        if value_at(text, path[:length]) in ({}, []) and value_at(before, path[:length]) is None:
            text = remove_member(text, path[:length])
    return text


def _nest_value(path: KeyPath, value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _find_deepest(text: str, path: KeyPath) -> tuple[JsonNode, KeyPath]:
    """The deepest node that is there, and what is left of the path."""
    node = jsonc.parse(text)
    for number, key in enumerate(path):
        if not isinstance(node.value, dict):
            what = ".".join(path[:number]) or "The document"
            raise ConfigError(f"{what} is no object", jsonc.line_number(text, node.start))
        found = [child for child in node.children if child.key == key]
        if len(found) > 1:
            raise ConfigError(f'"{key}" stands twice in one object', jsonc.line_number(text, found[-1].start))
        if not found:
            return node, path[number:]
        node = found[0].node
    return node, ()


def _append_children(text: str, node: JsonNode, prefixes: Sequence[str], values: Sequence[Any]) -> str:
    """Put children behind the last one, and behind the comments that follow it."""
    inside = text[node.start + 1 : node.end - 1]
    end = node.start + 1 + len(inside.rstrip(_BLANK))
    last = node.children[-1].node.end if node.children else None
    comma = "," if last is not None and text[jsonc.skip_space(text, last)] != "," else ""
    outer = _line_indent(text, node.start)
    if _is_inline(text, node):
        told = ", ".join(
            prefix + json.dumps(value, ensure_ascii=False) for prefix, value in zip(prefixes, values, strict=True)
        )
        new, close = (" " if last is not None else "") + told, ""
    else:
        own = _child_indent(text, node) or outer + _indent_unit(text)
        newline = _line_ending(text)
        told = ",".join(
            newline + own + prefix + _format_value(text, value, own)
            for prefix, value in zip(prefixes, values, strict=True)
        )
        new, close = told, "" if "\n" in text[end : node.end - 1] else newline + outer
    if last is None:
        last = end
    return text[:last] + comma + text[last:end] + new + close + text[end:]


def _is_inline(text: str, node: JsonNode) -> bool:
    if node.children:
        return "\n" not in text[node.start : node.end]
    return "\n" not in text.strip() and text.strip(_BLANK + "\ufeff") != text[node.start : node.end]


def _remove_child(text: str, node: JsonNode, goes: Callable[[JsonChild], bool]) -> str:
    """The text without one child, its comma, and the line it leaves empty."""
    number = next(number for number, child in enumerate(node.children) if goes(child))
    child = node.children[number]
    start, end = child.start, child.node.end
    line = re.search(r"\r?\n[ \t]*\Z|[ \t]*\Z", text[:start])
    start = line.start() if line else start
    spans = [(start, end)]
    comma = jsonc.skip_space(text, end)
    if text[comma] == ",":
        spans.append((comma, comma + 1))
    elif number:
        comma = jsonc.skip_space(text, node.children[number - 1].node.end)
        spans.insert(0, (comma, comma + 1))
    for first, past in reversed(spans):
        text = text[:first] + text[past:]
    close = node.end - sum(past - first for first, past in spans) - 1
    if not text[node.start + 1 : close].strip(_BLANK):
        text = text[: node.start + 1] + text[close:]
    return text


def _verify_edit(text: str, done: str, path: KeyPath, change: Callable[[Any], Any]) -> str:
    """The new text, once reading it gives the old document with that one change and no other."""
    expected = _Document(copy.deepcopy(jsonc.parse(text).value))
    expected.apply(path, change)
    if jsonc.parse(done).value != expected.value:
        raise ConfigError(f"{'.'.join(path)} stands in a way that cannot be changed safely. Change it by hand")
    return done


@dataclass(slots=True)
class _Document:
    value: Any

    def apply(self, path: KeyPath, change: Callable[[Any], Any]) -> None:
        if not path:
            self.value = change(self.value)
            return
        at = self.value
        for key in path[:-1]:
            at = at.setdefault(key, {})
        at[path[-1]] = change(at.get(path[-1], []))


def _format_value(text: str, value: Any, indent: str) -> str:
    if "\n" not in text.strip() and text.strip(_BLANK + "\ufeff") != "{}":
        return json.dumps(value, ensure_ascii=False)
    told = json.dumps(value, indent=_indent_unit(text), ensure_ascii=False)
    return told.replace("\n", _line_ending(text) + indent)


def _line_indent(text: str, at: int) -> str:
    """The blanks at the beginning of the line."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _child_indent(text: str, node: JsonNode) -> str | None:
    """The indentation of the first child that begins a line."""
    for child in node.children:
        if not text[text.rfind("\n", 0, child.start) + 1 : child.start].strip(" \t"):
            return _line_indent(text, child.start)
    return None


def _indent_unit(text: str) -> str:
    """One step of indentation, as the text does it."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found else "  "


def _line_ending(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
