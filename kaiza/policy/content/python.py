"""Unfinished Python, found in its own syntax tree; strings and prose are not looked at."""

import ast
import re
import warnings
from collections.abc import Iterator

from kaiza.domain.finding import ERROR, Finding
from kaiza.policy.content.lines import AddedLines, compile_patterns, find_suspect_lines, overlapping_added
from kaiza.policy.content.notes import NOTE_MARK, NOTE_SEARCH, find_note
from kaiza.policy.content.python_text import comments, is_too_costly
from kaiza.policy.content.syntax import MAX_BYTES

_COMMENT_START = re.compile("#")
_LINE_RULES = (
    ("stub-not-implemented", re.compile(r"\s*raise\s+NotImplementedError\b")),
    ("stub-empty-except", re.compile(r"\s*except\b.*:\s*(pass|\.\.\.)\s*(#.*)?$")),
)
"""Held against a line's beginning; neither tries any stretch of it twice."""
_SUSPECT_WORDS = compile_patterns(rb"TODO|FIXME|NotImplementedError|except")
"""Finds at least every line that is refused."""
_EXCUSED_DECORATORS = frozenset({"overload", "abstractmethod"})
STUB_MESSAGES = {
    "stub-todo": ("The added code leaves a note to finish it", "Finish it, or take it out"),
    "stub-not-implemented": ("The added code raises NotImplementedError", "Write what is missing"),
    "stub-empty-except": ("The added code swallows an exception", "Handle it, or let it pass on"),
    "stub-empty-body": ("The added function does nothing", "Write what it does, or take it out"),
}
FoundStub = tuple[int, int, int, str]
"""First line, last line, column, rule."""


def find_python_stubs(name: str, after: bytes, added: AddedLines) -> Iterator[Finding]:
    """What is unfinished in the added lines; a file that is no Python any more is looked at line by line."""
    parsed = _parse_module(after)
    found = (
        _scan_lines(after)
        if parsed is None
        else [*_find_notes(after), *_find_stub_nodes(parsed, typed_only=name.endswith(".pyi"))]
    )
    spans = ((first, last, (first, column, rule)) for first, last, column, rule in sorted(found))
    for first, column, rule in overlapping_added(spans, added):
        yield Finding(first, column, ERROR, rule, *STUB_MESSAGES[rule])


def _parse_module(after: bytes) -> ast.Module | None:
    if len(after) > MAX_BYTES or is_too_costly(after):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _find_notes(after: bytes) -> Iterator[FoundStub]:
    if NOTE_SEARCH.search(after) is not None:
        for line, column, comment in comments(after):
            for mark in NOTE_MARK.finditer(comment):
                yield line, line, column + mark.start(), "stub-todo"


def _find_stub_nodes(root: ast.Module, *, typed_only: bool) -> Iterator[FoundStub]:
    excused = _excused_functions(root)
    for node in ast.walk(root):
        if isinstance(node, ast.Raise) and _last_name(node.exc) == "NotImplementedError":
            yield _found_at(node, "stub-not-implemented")
        elif isinstance(node, ast.ExceptHandler) and _is_empty(node.body):
            yield _found_at(node, "stub-empty-except")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_empty(node.body):
            yield from () if typed_only or node in excused else (_found_at(node, "stub-empty-body"),)


def _excused_functions(root: ast.Module) -> set[ast.AST]:
    """Functions that only say what others do: in protocols, abstract, or overloads."""
    excused: set[ast.AST] = set()
    for node in ast.walk(root):
        if isinstance(node, ast.ClassDef) and "Protocol" in map(_last_name, node.bases):
            excused.update(node.body)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _EXCUSED_DECORATORS & set(
            map(_last_name, node.decorator_list)
        ):
            excused.add(node)
    return excused


def _is_empty(body: list[ast.stmt]) -> bool:
    return all(
        isinstance(one, ast.Pass)
        or (
            isinstance(one, ast.Expr)
            and isinstance(one.value, ast.Constant)
            and isinstance(one.value.value, str | type(...))
        )
        for one in body
    )


def _last_name(node: ast.expr | None) -> str:
    """The last name of what is called, subscripted or reached for."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _found_at(node: ast.stmt | ast.ExceptHandler, rule: str) -> FoundStub:
    return node.lineno - 1, (node.end_lineno or node.lineno) - 1, node.col_offset, rule


def _scan_lines(after: bytes) -> Iterator[FoundStub]:
    for number, encoded in find_suspect_lines(_SUSPECT_WORDS, after, None):
        line = encoded.decode("utf-8", "replace")
        column = find_note(line, _COMMENT_START)
        if column is not None:
            yield number, number, column, "stub-todo"
        for rule, shape in _LINE_RULES:
            if shape.match(line):
                yield number, number, 0, rule
