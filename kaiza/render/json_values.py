"""JSON values as indented lines for people. Every character that could control a terminal is escaped."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from kaiza.render.terminal import INDENT, QUOTE, escape, escape_json

_DELETE = b"\x7f"
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_INDENT = 40  # an answer may be nested deeper than Python can recurse


def encode_document(value: Any) -> bytes:
    r"""One JSON document, indented, with JSON escapes for what controls a terminal: a pipe may end at one.

    Bytes of file names that are not UTF-8 become the text `\xNN`, as in the log.
    """
    try:
        encoded = orjson.dumps(value, option=orjson.OPT_INDENT_2)
    except orjson.JSONEncodeError:
        encoded = orjson.dumps(_without_surrogates(value), option=orjson.OPT_INDENT_2)
    return escape_json_lines(encoded)


def escape_json_lines(encoded: bytes) -> bytes:
    """JSON of the same value that controls no terminal."""
    if encoded.isascii() and _DELETE not in encoded:
        return encoded
    return "\n".join(map(escape_json, encoded.decode("utf-8", "replace").split("\n"))).encode()


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub(lambda found: escape(found[0]), value)
    if isinstance(value, Mapping):
        return {_without_surrogates(name): _without_surrogates(member) for name, member in value.items()}
    return list(map(_without_surrogates, value)) if isinstance(value, list | tuple) else value


def format_members(value: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """One line for each member; objects, arrays and texts of several lines are indented below their name."""
    for name, member in value.items():
        yield from _format_member(f"{indent}{escape(name)}:", member, indent)


def format_text(text: str, indent: str = "") -> Iterator[str]:
    """Each line of a text behind a mark, so that it cannot imitate output of Kaiza."""
    yield from (f"{indent}{QUOTE}{escape(line)}" for line in text.removesuffix("\n").split("\n"))


def _format_member(head: str, value: Any, indent: str) -> Iterator[str]:
    is_text = isinstance(value, str)
    is_nested = (isinstance(value, dict | list) and value) or (is_text and "\n" in value)
    if not is_nested:
        yield f"{head} {escape(value) if is_text and value else orjson.dumps(value).decode()}"
        return
    if len(indent) > _MAX_INDENT:
        yield f"{head} ..."
        return
    yield head
    below = indent + INDENT
    if isinstance(value, dict):
        yield from format_members(value, below)
    elif is_text:
        yield from format_text(value, below)
    else:
        for item in value:
            yield from _format_item(item, below)


def _format_item(item: Any, indent: str) -> Iterator[str]:
    """An item of an array: its first line is marked, the others are indented like it."""
    if not isinstance(item, dict) or not item:
        yield from _format_member(f"{indent}-", item, indent)
        return
    first, *rest = format_members(item, indent + INDENT)
    yield f"{indent}- {first.removeprefix(indent + INDENT)}"
    yield from rest
