"""Finds unfinished code: TODO comments, empty bodies, swallowed errors. Strings and prose are ignored."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kaiza.domain.finding import ERROR, Finding
from kaiza.policy.content.lines import NOTE_MARK, NOTE_SEARCH, AddedLines, find_note, find_suspect_lines, is_added
from kaiza.policy.content.python import STUB_MESSAGES, find_python_stubs
from kaiza.policy.content.syntax import MAX_BYTES, SyntaxTree, language, parse_tree

_COMMENT_START = re.compile(r"//|/\*|\*")
_BODY_KINDS = frozenset({"block", "statement_block", "compound_statement"})
_EMPTY_KINDS = frozenset({"{", "}", "comment", "line_comment", "block_comment"})
_EMPTY_CATCH_MESSAGE = ("The added code swallows an error", "Handle it, or let it propagate")

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


def find_stubs(name: str, after: bytes, added: AddedLines = None) -> Iterator[Finding]:
    """Unfinished code in the added lines of a file. Files in other languages have none."""
    file_language = language(name)
    if file_language == "python":
        yield from find_python_stubs(name, after, added)
    elif file_language is not None and len(after) > MAX_BYTES:
        yield from _scan_lines(after, added)
    elif file_language is not None:
        parsed = parse_tree(after, file_language)
        yield from sorted([*_find_notes(parsed, file_language, added), *_find_empty(parsed, file_language, added)])


def _find_notes(parsed: SyntaxTree, file_language: str, added: AddedLines) -> Iterator[Finding]:
    for node in parsed.find_kinds(_COMMENTS.get(file_language, ("comment",))):
        text = node.text()
        if NOTE_MARK.search(text):
            first, begin = parsed.position_of(node)
            for offset, line in enumerate(text.split("\n")):
                for mark in NOTE_MARK.finditer(line):
                    if is_added(first + offset, added):
                        column = mark.start() + (begin if offset == 0 else 0)
                        yield Finding(first + offset, column, ERROR, "stub-todo", *STUB_MESSAGES["stub-todo"])


def _find_empty(parsed: SyntaxTree, file_language: str, added: AddedLines) -> Iterator[Finding]:
    """Functions and handlers of errors with empty bodies."""
    functions = parsed.find_kinds(_FUNCTIONS[file_language])
    empty = (node for node in functions if _has_empty_body(node) and not _is_constructor(node, file_language))
    for node in parsed.nodes_with_added_lines(empty, added):
        yield parsed.finding(node, "stub-empty-body", *STUB_MESSAGES["stub-empty-body"])
    clauses = () if file_language in _NO_CATCH else parsed.find_kinds(("catch_clause",))
    for node in parsed.nodes_with_added_lines(filter(_has_empty_body, clauses), added):
        yield parsed.finding(node, "stub-empty-catch", *_EMPTY_CATCH_MESSAGE)


def _has_empty_body(node: Any) -> bool:
    body = next((child for child in node.children() if child.kind() in _BODY_KINDS), None)
    return body is not None and {child.kind() for child in body.children()} <= _EMPTY_KINDS


def _is_constructor(node: Any, file_language: str) -> bool:
    """Whether it is a constructor or destructor. Their bodies may be empty: parameters and initializers do the work."""
    children = node.children()
    if file_language == "cpp":
        # Only these have no return type, so the declarator is the first child.
        return bool(children[0].kind() == "function_declarator")
    return any(child.text() == "constructor" for child in children if child.kind() == "property_identifier")


def _scan_lines(after: bytes, added: AddedLines) -> Iterator[Finding]:
    for number, line in find_suspect_lines(NOTE_SEARCH, after, added):
        column = find_note(line.decode("utf-8", "replace"), _COMMENT_START)
        if column is not None:
            yield Finding(number, column, ERROR, "stub-todo", *STUB_MESSAGES["stub-todo"])
