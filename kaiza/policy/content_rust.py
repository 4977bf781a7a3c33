"""Rust that does not panic and needs no trust: what is added has no unwrap, expect, panic!, todo! or unsafe."""

import re
from collections.abc import Container, Iterator
from typing import Any

from kaiza.domain.finding import ERROR, Finding
from kaiza.policy.content_syntax import MAX_BYTES, finding, language, touches, tree

_CALLS = ("unwrap", "expect")
_MACROS = ("panic", "todo", "unimplemented")
_NAME = {"regex": f"^({'|'.join(_CALLS + _MACROS)})$"}
_NAMES = {"any": [{"kind": "identifier", **_NAME}, {"kind": "field_identifier", **_NAME}]}
_LINE = re.compile(r"\.\s*(unwrap|expect)\s*\(|\b(panic|todo|unimplemented)\s*!|\b(unsafe)\b")
_FIXES = {
    "unwrap": "Handle the other case, or return it with ?",
    "expect": "Handle the other case, or return it with ?",
    "panic": "Return an error",
    "todo": "Write what is missing",
    "unimplemented": "Write what is missing",
    "unsafe": "Write it in safe Rust",
}


def rust(name: str, after: bytes, added: Container[int] | None = None) -> Iterator[Finding]:
    """What the rule refuses in the added lines of a Rust file, counted from 0; None means that all are new."""
    if language(name) != "rust":
        return
    if len(after) > MAX_BYTES:
        yield from _by_line(after, added)
        return
    root = tree(after, "rust")
    for node in root.find_all({"rule": _NAMES}):
        if _is_call(node) and touches(node, added):
            yield _found(node, node.text())
    for node in root.find_all({"rule": {"regex": "^unsafe$"}}):
        if node.kind() == "unsafe" and touches(node, added):
            yield _found(node, "unsafe")


def _is_call(node: Any) -> bool:
    """Whether the name is used as what the rule is about, and does not merely stand there."""
    word = node.text()
    if word in _MACROS:
        parent = node.parent()
        outer = parent if parent is not None and parent.kind() == "scoped_identifier" else node
        follower = outer.next()
        return follower is not None and follower.text() == "!"
    before = node.prev()
    if node.kind() == "field_identifier":
        around = node.parent().parent()
        return around is not None and around.kind() in {"call_expression", "generic_function"}
    return before is not None and before.text() in {".", "::"}


def _found(node: Any, word: str) -> Finding:
    shown = f"{word}!" if word in _MACROS else word
    return finding(node, f"rust-{word}", f"The added Rust uses {shown}", _FIXES[word])


def _by_line(after: bytes, added: Container[int] | None) -> Iterator[Finding]:
    for number, line in enumerate(after.decode("utf-8", "replace").split("\n")):
        if added is None or number in added:
            for match in _LINE.finditer(line.partition("//")[0]):
                word = match[match.lastindex or 0]
                message = f"The added Rust uses {word}"
                yield Finding(number, match.start(), ERROR, f"rust-{word}", message, _FIXES[word])
