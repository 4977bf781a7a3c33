"""Edits one value of a JSON text and preserves all other bytes: comments, order, indentation, line endings.

Every edit is parsed again before it is returned, and must differ from the original in exactly that value.
"""

import copy
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.store.clients import jsonc
from kaiza.store.clients.client import ConfigError
from kaiza.store.clients.jsonc import JsonChild, JsonNode

KeyPath = Sequence[str]
_BLANK = " \t\r\n"


def value_at(text: str, path: KeyPath) -> Any:
    """The value at `path`, or None."""
    node = jsonc.parse(text) if text.strip(_BLANK + "\ufeff") else None
    for key in path:
        matches = [child.node for child in node.children if child.key == key] if node else []
        node = matches[-1] if matches else None
    return node.value if node else None


def set_value(text: str, path: KeyPath, value: Any) -> str:
    """The text with `value` at `path`. Missing objects are created; an equal value keeps its spelling."""
    if not text.strip(_BLANK):
        return json.dumps(_nest_value(path, value), indent=2, ensure_ascii=False) + "\n"
    node, missing = _find_deepest(text, path)
    if missing:
        key = json.dumps(missing[0], ensure_ascii=False) + ": "
        edited = _append_children(text, node, [key], [_nest_value(missing[1:], value)])
    elif node.value == value:
        return text
    else:
        edited = text[: node.start] + _format_value(text, value, _line_indent(text, node.start)) + text[node.end :]
    return _verify_edit(text, edited, path, lambda _: value)


def extend_list(text: str, path: KeyPath, items: Sequence[str]) -> str:
    """The text with those of `items` appended to the array at `path` that it does not contain."""
    node, missing_path = _find_deepest(text, path) if text.strip(_BLANK) else (None, path)
    if node is None or missing_path:
        return set_value(text, path, list(items))
    if not isinstance(node.value, list):
        raise ConfigError(f"{'.'.join(path)} is not an array", jsonc.line_number(text, node.start))
    missing = [item for item in items if item not in node.value]
    if not missing:
        return text
    edited = _append_children(text, node, [""] * len(missing), missing)
    return _verify_edit(text, edited, path, lambda value: [*value, *missing])


def remove_member(text: str, path: KeyPath) -> str:
    """The text without the member at `path`; unchanged if there is none."""
    *parent, name = path
    node, missing = _find_deepest(text, parent)
    if missing or not any(child.key == name for child in node.children):
        return text
    edited = _remove_child(text, node, lambda child: child.key == name)
    return _verify_edit(
        text, edited, parent, lambda value: {key: member for key, member in value.items() if key != name}
    )


def shrink_list(text: str, path: KeyPath, items: Sequence[str]) -> str:
    """The text without `items` in the array at `path`."""
    node, missing = _find_deepest(text, path)
    if missing or not isinstance(node.value, list):
        return text
    edited = text
    # Parsed again after each removal, because it shifts the positions of the others.
    while (node := _find_deepest(edited, path)[0]) and any(child.node.value in items for child in node.children):
        first = next(child for child in node.children if child.node.value in items)
        edited = _remove_child(edited, node, lambda child, first=first: child is first)  # type: ignore[misc]
    return _verify_edit(text, edited, path, lambda value: [item for item in value if item not in items])


def remove_empty(text: str, path: KeyPath, before: str) -> str:
    """The text without empty containers on this path that `before` did not have."""
    for length in range(len(path), 0, -1):
        if value_at(text, path[:length]) in ({}, []) and value_at(before, path[:length]) is None:
            text = remove_member(text, path[:length])
    return text


def _nest_value(path: KeyPath, value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _find_deepest(text: str, path: KeyPath) -> tuple[JsonNode, KeyPath]:
    """The deepest existing node on the path, and the rest of the path."""
    node = jsonc.parse(text)
    for number, key in enumerate(path):
        if not isinstance(node.value, dict):
            name = ".".join(path[:number]) or "The document"
            raise ConfigError(f"{name} is not an object", jsonc.line_number(text, node.start))
        matches = [child for child in node.children if child.key == key]
        if len(matches) > 1:
            # Parsers disagree about which of the two counts.
            line = jsonc.line_number(text, matches[-1].start)
            raise ConfigError(f'"{key}" appears twice in one object', line)
        if not matches:
            return node, path[number:]
        node = matches[0].node
    return node, ()


def _append_children(text: str, node: JsonNode, prefixes: Sequence[str], values: Sequence[Any]) -> str:
    """Insert children after the last one, and after the comments that follow it."""
    inside = text[node.start + 1 : node.end - 1]
    end = node.start + 1 + len(inside.rstrip(_BLANK))
    last = node.children[-1].node.end if node.children else None
    comma = "," if last is not None and text[jsonc.skip_space(text, last)] != "," else ""
    outer = _line_indent(text, node.start)
    if _is_inline(text, node):
        members = ", ".join(
            prefix + json.dumps(value, ensure_ascii=False) for prefix, value in zip(prefixes, values, strict=True)
        )
        new, close = (" " if last is not None else "") + members, ""
    else:
        indent = _child_indent(text, node) or outer + _indent_unit(text)
        newline = _line_ending(text)
        new = ",".join(
            newline + indent + prefix + _format_value(text, value, indent)
            for prefix, value in zip(prefixes, values, strict=True)
        )
        close = "" if "\n" in text[end : node.end - 1] else newline + outer
    if last is None:
        last = end
    # The comma goes directly after the last child, not after its comment.
    return text[:last] + comma + text[last:end] + new + close + text[end:]


def _is_inline(text: str, node: JsonNode) -> bool:
    if node.children:
        return "\n" not in text[node.start : node.end]
    return "\n" not in text.strip() and text.strip(_BLANK + "\ufeff") != text[node.start : node.end]


def _remove_child(text: str, node: JsonNode, is_removed: Callable[[JsonChild], bool]) -> str:
    """The text without one child, its comma, and the line that this leaves empty."""
    number = next(number for number, child in enumerate(node.children) if is_removed(child))
    child = node.children[number]
    start, end = child.start, child.node.end
    line_start = re.search(r"\r?\n[ \t]*\Z|[ \t]*\Z", text[:start])
    start = line_start.start() if line_start else start
    spans = [(start, end)]
    comma = jsonc.skip_space(text, end)
    if text[comma] == ",":
        spans.append((comma, comma + 1))
    elif number:
        # The last child has no comma of its own: remove the one before it.
        comma = jsonc.skip_space(text, node.children[number - 1].node.end)
        spans.insert(0, (comma, comma + 1))
    for first, past in reversed(spans):
        text = text[:first] + text[past:]
    close = node.end - sum(past - first for first, past in spans) - 1
    if not text[node.start + 1 : close].strip(_BLANK):
        text = text[: node.start + 1] + text[close:]
    return text


def _verify_edit(text: str, edited: str, path: KeyPath, change: Callable[[Any], Any]) -> str:
    """Return `edited` if it parses to the original document with only `change` applied at `path`."""
    expected = _Document(copy.deepcopy(jsonc.parse(text).value))
    expected.apply(path, change)
    if jsonc.parse(edited).value != expected.value:
        raise ConfigError(f"{'.'.join(path)} cannot be changed safely. Change it by hand")
    return edited


@dataclass(slots=True)
class _Document:
    value: Any

    def apply(self, path: KeyPath, change: Callable[[Any], Any]) -> None:
        if not path:
            self.value = change(self.value)
            return
        parent = self.value
        for key in path[:-1]:
            parent = parent.setdefault(key, {})
        parent[path[-1]] = change(parent.get(path[-1], []))


def _format_value(text: str, value: Any, indent: str) -> str:
    if "\n" not in text.strip() and text.strip(_BLANK + "\ufeff") != "{}":
        return json.dumps(value, ensure_ascii=False)
    formatted = json.dumps(value, indent=_indent_unit(text), ensure_ascii=False)
    return formatted.replace("\n", _line_ending(text) + indent)


def _line_indent(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _child_indent(text: str, node: JsonNode) -> str | None:
    """Indentation of the first child that begins a line."""
    for child in node.children:
        if not text[text.rfind("\n", 0, child.start) + 1 : child.start].strip(" \t"):
            return _line_indent(text, child.start)
    return None


def _indent_unit(text: str) -> str:
    """One level of the text's own indentation."""
    first_indent = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return first_indent[1] if first_indent else "  "


def _line_ending(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
