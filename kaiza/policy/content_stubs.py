"""Nothing unfinished is added: no TODO, no empty body, no swallowed error; in code, not in prose or strings."""

import re
from collections.abc import Container, Iterator, Mapping
from typing import Any

from kaiza.domain.finding import ERROR, Finding
from kaiza.policy.content_python import SAID, python_stubs
from kaiza.policy.content_syntax import MAX_BYTES, finding, language, touches, tree

_MARK = re.compile(r"\b(TODO|FIXME)\b")
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


def stubs(name: str, after: bytes, added: Container[int] | None = None) -> Iterator[Finding]:
    """What is unfinished in the added lines of a file, counted from 0; None means that all lines are new."""
    spoken = language(name)
    if spoken == "python":
        yield from python_stubs(name, after, added)
    elif spoken is not None and len(after) > MAX_BYTES:
        yield from _by_line(after, added)
    elif spoken is not None:
        root = tree(after, spoken)
        yield from sorted([*_notes(root, spoken, added), *_bodies(root, spoken, added), *_catches(root, spoken, added)])


def _notes(root: Any, spoken: str, added: Container[int] | None) -> Iterator[Finding]:
    for node in _of_kinds(root, _COMMENTS.get(spoken, ("comment",))):
        start = node.range().start
        for offset, line in enumerate(node.text().split("\n")):
            number = start.line + offset
            if added is None or number in added:
                for mark in _MARK.finditer(line):
                    column = mark.start() + (start.column if offset == 0 else 0)
                    yield Finding(number, column, ERROR, "stub-todo", *SAID["stub-todo"])


def _bodies(root: Any, spoken: str, added: Container[int] | None) -> Iterator[Finding]:
    for node in _of_kinds(root, _FUNCTIONS[spoken]):
        if _has_empty_body(node) and not _is_constructor(node, spoken) and touches(node, added):
            yield finding(node, "stub-empty-body", *SAID["stub-empty-body"])


def _catches(root: Any, spoken: str, added: Container[int] | None) -> Iterator[Finding]:
    if spoken in _NO_CATCH:
        return
    for node in _of_kinds(root, ("catch_clause",)):
        if _has_empty_body(node) and touches(node, added):
            yield finding(node, "stub-empty-catch", *_CATCH)


def _of_kinds(root: Any, kinds: tuple[str, ...]) -> list[Any]:
    found: list[Any] = root.find_all({"rule": {"any": [{"kind": kind} for kind in kinds]}})
    return found


def _has_empty_body(node: Any) -> bool:
    body = next((child for child in node.children() if child.kind() in _BODIES), None)
    return body is not None and {child.kind() for child in body.children()} <= _NOTHING


def _is_constructor(node: Any, spoken: str) -> bool:
    """A constructor may do nothing: its parameters or its base do the work."""
    children = node.children()
    if spoken == "cpp":
        return bool(children[0].kind() == "function_declarator")
    return any(child.text() == "constructor" for child in children if child.kind() == "property_identifier")


def _by_line(after: bytes, added: Container[int] | None) -> Iterator[Finding]:
    for number, line in enumerate(after.decode("utf-8", "replace").split("\n")):
        if added is None or number in added:
            for mark in re.finditer(r"(?://|/\*|\*).*\b(TODO|FIXME)\b", line):
                yield Finding(number, mark.start(), ERROR, "stub-todo", *SAID["stub-todo"])
