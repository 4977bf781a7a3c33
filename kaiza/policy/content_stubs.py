"""Nothing unfinished is added: no TODO, no empty body, no swallowed error; in code, not in prose or strings."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kaiza.domain.finding import ERROR, Finding
from kaiza.policy.content_lines import Added, is_added, suspects
from kaiza.policy.content_notes import MARK, MARKED, noted
from kaiza.policy.content_python import SAID, python_stubs
from kaiza.policy.content_syntax import MAX_BYTES, Tree, language, tree

_OPENER = re.compile(r"//|/\*|\*")
_BODIES = frozenset({"block", "statement_block", "compound_statement"})
_NOTHING = frozenset({"{", "}", "comment", "line_comment", "block_comment"})
_CATCH = ("The added code swallows an error", "Handle it, or let it pass on")

_FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "javascript": ("function_declaration", "method_definition", "generator_function_declaration"),
    "typescript": ("function_declaration", "method_definition", "generator_function_declaration"),
    "tsx": ("function_declaration", "method_definition", "generator_function_declaration"),
    "go": ("function_declaration", "method_declaration"),
    "java": ("method_declaration",),
    "rust": ("function_item",),
    "c": ("function_definition",),
    "cpp": ("function_definition",),
    "csharp": ("method_declaration", "local_function_statement"),
}
_COMMENTS: Mapping[str, tuple[str, ...]] = {
    "java": ("line_comment", "block_comment"),
    "rust": ("line_comment", "block_comment"),
}
_NO_CATCH = frozenset({"go", "rust", "c"})


def stubs(name: str, after: bytes, added: Added = None) -> Iterator[Finding]:
    """What is unfinished in the added lines of a file."""
    spoken = language(name)
    if spoken == "python":
        yield from python_stubs(name, after, added)
    elif spoken is not None and len(after) > MAX_BYTES:
        yield from _by_line(after, added)
    elif spoken is not None:
        parsed = tree(after, spoken)
        found = (_notes(parsed, spoken, added), _bodies(parsed, spoken, added), _catches(parsed, spoken, added))
        yield from sorted(one for some in found for one in some)


def _notes(parsed: Tree, spoken: str, added: Added) -> Iterator[Finding]:
    for node in parsed.of_kinds(_COMMENTS.get(spoken, ("comment",))):
        text = node.text()
        if MARK.search(text):
            first, begin = parsed.place(node)
            for offset, line in enumerate(text.split("\n")):
                for mark in MARK.finditer(line):
                    if is_added(first + offset, added):
                        column = mark.start() + (begin if offset == 0 else 0)
                        yield Finding(first + offset, column, ERROR, "stub-todo", *SAID["stub-todo"])


def _bodies(parsed: Tree, spoken: str, added: Added) -> Iterator[Finding]:
    functions = parsed.of_kinds(_FUNCTIONS[spoken])
    empty = (node for node in functions if _has_empty_body(node) and not _is_constructor(node, spoken))
    for node in parsed.added(empty, added):
        yield parsed.finding(node, "stub-empty-body", *SAID["stub-empty-body"])


def _catches(parsed: Tree, spoken: str, added: Added) -> Iterator[Finding]:
    clauses = () if spoken in _NO_CATCH else parsed.of_kinds(("catch_clause",))
    for node in parsed.added(filter(_has_empty_body, clauses), added):
        yield parsed.finding(node, "stub-empty-catch", *_CATCH)


def _has_empty_body(node: Any) -> bool:
    body = next((child for child in node.children() if child.kind() in _BODIES), None)
    return body is not None and {child.kind() for child in body.children()} <= _NOTHING


def _is_constructor(node: Any, spoken: str) -> bool:
    """A constructor may do nothing: its parameters or its base do the work."""
    children = node.children()
    if spoken == "cpp":
        return bool(children[0].kind() == "function_declarator")
    return any(child.text() == "constructor" for child in children if child.kind() == "property_identifier")


def _by_line(after: bytes, added: Added) -> Iterator[Finding]:
    for number, line in suspects(MARKED, after, added):
        column = noted(line.decode("utf-8", "replace"), _OPENER)
        if column is not None:
            yield Finding(number, column, ERROR, "stub-todo", *SAID["stub-todo"])
