"""Unfinished Python, found in its own syntax tree; strings and prose are not looked at."""

import ast
import re
import warnings
from collections.abc import Iterator

from kaiza.domain.finding import ERROR, Finding
from kaiza.policy.content_lines import Added, program, suspects, touching
from kaiza.policy.content_notes import MARK, MARKED, noted
from kaiza.policy.content_python_text import comments, costs_too_much
from kaiza.policy.content_syntax import MAX_BYTES

_OPENER = re.compile("#")
_LINES = (
    ("stub-not-implemented", re.compile(r"\s*raise\s+NotImplementedError\b")),
    ("stub-empty-except", re.compile(r"\s*except\b.*:\s*(pass|\.\.\.)\s*(#.*)?$")),
)
"""Held against a line's beginning; neither tries any stretch of it twice."""
_WORDS = program(rb"TODO|FIXME|NotImplementedError|except")
"""Finds at least every line that is refused."""
_UNTOLD = frozenset({"overload", "abstractmethod"})
SAID = {
    "stub-todo": ("The added code leaves a note to finish it", "Finish it, or take it out"),
    "stub-not-implemented": ("The added code raises NotImplementedError", "Write what is missing"),
    "stub-empty-except": ("The added code swallows an exception", "Handle it, or let it pass on"),
    "stub-empty-body": ("The added function does nothing", "Write what it does, or take it out"),
}
Found = tuple[int, int, int, str]
"""First line, last line, column, rule."""


def python_stubs(name: str, after: bytes, added: Added) -> Iterator[Finding]:
    """What is unfinished in the added lines; a file that is no Python any more is looked at line by line."""
    parsed = _parsed(after)
    found = _by_line(after) if parsed is None else [*_notes(after), *_nodes(parsed, typed_only=name.endswith(".pyi"))]
    spans = ((first, last, (first, column, rule)) for first, last, column, rule in sorted(found))
    for first, column, rule in touching(spans, added):
        yield Finding(first, column, ERROR, rule, *SAID[rule])


def _parsed(after: bytes) -> ast.Module | None:
    if len(after) > MAX_BYTES or costs_too_much(after):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _notes(after: bytes) -> Iterator[Found]:
    if MARKED.search(after) is not None:
        for line, column, comment in comments(after):
            for mark in MARK.finditer(comment):
                yield line, line, column + mark.start(), "stub-todo"


def _nodes(root: ast.Module, *, typed_only: bool) -> Iterator[Found]:
    excused = _excused(root)
    for node in ast.walk(root):
        if isinstance(node, ast.Raise) and _name(node.exc) == "NotImplementedError":
            yield _at(node, "stub-not-implemented")
        elif isinstance(node, ast.ExceptHandler) and _is_empty(node.body):
            yield _at(node, "stub-empty-except")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_empty(node.body):
            yield from () if typed_only or node in excused else (_at(node, "stub-empty-body"),)


def _excused(root: ast.Module) -> set[ast.AST]:
    """Functions that only say what others do: in protocols, abstract, or overloads."""
    excused: set[ast.AST] = set()
    for node in ast.walk(root):
        if isinstance(node, ast.ClassDef) and "Protocol" in map(_name, node.bases):
            excused.update(node.body)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _UNTOLD & set(
            map(_name, node.decorator_list)
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


def _name(node: ast.expr | None) -> str:
    """The last name of what is called, subscripted or reached for."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _at(node: ast.stmt | ast.ExceptHandler, rule: str) -> Found:
    return node.lineno - 1, (node.end_lineno or node.lineno) - 1, node.col_offset, rule


def _by_line(after: bytes) -> Iterator[Found]:
    for number, encoded in suspects(_WORDS, after, None):
        line = encoded.decode("utf-8", "replace")
        column = noted(line, _OPENER)
        if column is not None:
            yield number, number, column, "stub-todo"
        for rule, shape in _LINES:
            if shape.match(line):
                yield number, number, 0, rule
