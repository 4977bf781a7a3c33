"""Finds Rust that may panic or is unsafe: unwrap, expect, panic!, todo!, unimplemented! and unsafe."""

import re
from collections.abc import Iterator
from typing import Any

from kaiza.domain.finding import ERROR, Finding
from kaiza.policy.content.lines import AddedLines, compile_patterns, find_suspect_lines, is_added
from kaiza.policy.content.syntax import MAX_BYTES, SyntaxTree, language, parse_tree

_CALLS = ("unwrap", "expect")
_MACROS = ("panic", "todo", "unimplemented")
_NAME_KINDS = ("identifier", "field_identifier")
# ast-grep rules for a forbidden name, for its parent and for its grandparent. A node's own `parent()` is slow
# (see `SyntaxTree`), so the search goes from the top down.
_NAME = {"regex": f"^({'|'.join(_CALLS + _MACROS)})$"}
_NAMES = {"any": [{"kind": kind, **_NAME} for kind in _NAME_KINDS]}
_PARENTS = {"all": [{"has": _NAMES}]}
_GRANDPARENTS = {"all": [{"has": _PARENTS}]}
_CALL_KINDS = frozenset({"call_expression", "generic_function"})
_SUSPECT_WORDS = compile_patterns(*map(str.encode, (*_CALLS, *_MACROS, "unsafe")))
"""Finds every line that the rule may refuse, and some others."""
_LINE_PATTERN = re.compile(r"\.\s*(unwrap|expect)\s*\(|\b(panic|todo|unimplemented)\s*!|\b(unsafe)\b")
_FIXES = {
    "unwrap": "Handle the other case, or return it with ?",
    "expect": "Handle the other case, or return it with ?",
    "panic": "Return an error",
    "todo": "Implement what is missing",
    "unimplemented": "Implement what is missing",
    "unsafe": "Write it in safe Rust",
}


def find_rust_violations(name: str, after: bytes, added: AddedLines = None) -> Iterator[Finding]:
    """Forbidden calls, macros and keywords in the added lines of a Rust file."""
    if language(name) != "rust" or _SUSPECT_WORDS.search(after) is None:
        return
    if len(after) > MAX_BYTES:
        yield from _scan_lines(after, added)
        return
    parsed = parse_tree(after, "rust")
    unsafe = ((node, "unsafe") for node in parsed.find_nodes({"pattern": "unsafe"}))
    for node, word in (*_find_in_parents(parsed), *_find_in_grandparents(parsed), *unsafe):
        if is_added(parsed.position_of(node)[0], added):
            shown = f"{word}!" if word in _MACROS else word
            yield parsed.finding(node, f"rust-{word}", f"The added Rust uses {shown}", _FIXES[word])


def _find_in_parents(parsed: SyntaxTree) -> Iterator[tuple[Any, str]]:
    """Macros (`panic!`), and calls that are plain identifiers after `.` or `::`."""
    for parent in parsed.find_nodes(_PARENTS):
        children = parent.children()
        for previous, node, following in zip([None, *children], children, [*children[1:], None], strict=False):
            word = _forbidden_word(node)
            if word in _MACROS:
                if parsed.is_one_of(following, "!"):
                    yield node, word
            elif word and node.kind() == "identifier" and parsed.is_one_of(previous, ".", "::"):
                yield node, word


def _find_in_grandparents(parsed: SyntaxTree) -> Iterator[tuple[Any, str]]:
    """Macros by path (`std::panic!`), and calls of fields (`x.unwrap()`)."""
    for grandparent in parsed.find_nodes(_GRANDPARENTS):
        is_call = grandparent.kind() in _CALL_KINDS
        children = grandparent.children()
        for parent, following in zip(children, [*children[1:], None], strict=False):
            is_macro_path = parent.kind() == "scoped_identifier" and parsed.is_one_of(following, "!")
            for node in parent.children() if is_macro_path or is_call else ():
                word = _forbidden_word(node)
                if (is_macro_path and word in _MACROS) or (
                    is_call and word in _CALLS and node.kind() == "field_identifier"
                ):
                    yield node, word


def _forbidden_word(node: Any) -> str:
    """The node's text if it is a forbidden name, else an empty string."""
    word: str = node.text() if node.kind() in _NAME_KINDS else ""
    return word if word in _CALLS or word in _MACROS else ""


def _scan_lines(after: bytes, added: AddedLines) -> Iterator[Finding]:
    for number, line in find_suspect_lines(_SUSPECT_WORDS, after, added):
        for match in _LINE_PATTERN.finditer(line.decode("utf-8", "replace").partition("//")[0]):
            word = match[match.lastindex or 0]
            message = f"The added Rust uses {word}"
            yield Finding(number, match.start(), ERROR, f"rust-{word}", message, _FIXES[word])
