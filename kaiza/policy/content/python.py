"""Finds unfinished Python: TODO comments, empty bodies, swallowed exceptions.

Python's own parser gives the syntax tree, so text in strings is never mistaken for code. A file that does not parse is
scanned line by line.
"""

import ast
import codecs
import re
import warnings
from collections.abc import Iterator

from kaiza.domain.finding import ERROR, Finding
from kaiza.policy.content.lines import (
    NOTE_MARK,
    NOTE_SEARCH,
    AddedLines,
    compile_patterns,
    find_note,
    find_suspect_lines,
    locate_positions,
    overlapping_added,
)
from kaiza.policy.content.syntax import MAX_BYTES

_COMMENT_START = re.compile("#")
_LINE_RULES = (
    ("stub-not-implemented", re.compile(r"\s*raise\s+NotImplementedError\b")),
    ("stub-empty-except", re.compile(r"\s*except\b.*:\s*(pass|\.\.\.)\s*(#.*)?$")),
)
"""Matched at the start of a line. Neither pattern backtracks, so a long line costs linear time."""
_SUSPECT_WORDS = compile_patterns(rb"TODO|FIXME|NotImplementedError|except")
"""Finds every line that a rule may refuse, and some others."""
_EXCUSED_DECORATORS = frozenset({"overload", "abstractmethod"})
STUB_MESSAGES = {
    "stub-todo": ("The added code has a TODO or FIXME", "Finish it, or remove it"),
    "stub-not-implemented": ("The added code raises NotImplementedError", "Implement what is missing"),
    "stub-empty-except": ("The added code swallows an exception", "Handle it, or let it propagate"),
    "stub-empty-body": ("The added function has an empty body", "Implement it, or remove it"),
}
_FoundStub = tuple[int, int, int, str]
"""First line, last line, column, rule."""

_ESCAPED_CHARACTER = rb"\\(?:\r\n|(?s:.))"
_STRING = rb"QQQ(?:Q{0,2}(?:[^Q\\]|ANY))*(?:QQQ)?|Q(?:[^Q\\\r\n]|ANY)*Q?".replace(b"ANY", _ESCAPED_CHARACTER)
# An unclosed string extends as far as it can, so that no byte is scanned twice. `tokenize` is not used: it takes
# quadratic time on long lines, on different ones in different Python releases.
_COMMENT_OR_STRING = compile_patterns(rb"#[^\r\n]*", *(_STRING.replace(b"Q", quote) for quote in (b"'", b'"')))
_MAX_COST = 1_000_000_000


def find_python_stubs(name: str, after: bytes, added: AddedLines) -> Iterator[Finding]:
    """Unfinished code in the added lines."""
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
    """The syntax tree; None if the file does not parse, or would take too long."""
    if len(after) > MAX_BYTES:
        return None
    # Parsing could take very long: Python's parser reads an f-string again for each of its fields.
    if after.count(b"{") * len(after) > _MAX_COST:
        spans = _comment_and_string_spans(after)
        if sum((end - start) * after.count(b"{", start, end) for start, end in spans) > _MAX_COST:
            return None
    try:
        with warnings.catch_warnings():
            # `ast.parse` warns about invalid escapes in the user's code; they are none of ours.
            warnings.simplefilter("ignore")
            return ast.parse(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _find_notes(after: bytes) -> Iterator[_FoundStub]:
    if NOTE_SEARCH.search(after) is not None:
        for line, column, comment in _find_comments(after):
            for mark in NOTE_MARK.finditer(comment):
                yield line, line, column + mark.start(), "stub-todo"


def _find_stub_nodes(root: ast.Module, *, typed_only: bool) -> Iterator[_FoundStub]:
    excused = _excused_functions(root)
    for node in ast.walk(root):
        if isinstance(node, ast.Raise) and _last_name(node.exc) == "NotImplementedError":
            yield _found_at(node, "stub-not-implemented")
        elif isinstance(node, ast.ExceptHandler) and _is_empty(node.body):
            yield _found_at(node, "stub-empty-except")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_empty(node.body):
            yield from () if typed_only or node in excused else (_found_at(node, "stub-empty-body"),)


def _excused_functions(root: ast.Module) -> set[ast.AST]:
    """Functions that need no body: in protocols, abstract ones and overloads."""
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
    """Whether a body is only `pass`, `...` and docstrings."""
    return all(
        isinstance(statement, ast.Pass)
        or (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str | type(...))
        )
        for statement in body
    )


def _last_name(node: ast.expr | None) -> str:
    """Last name of a dotted, called or subscripted expression: `c` of `a.b.c[T](x)`."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _found_at(node: ast.stmt | ast.ExceptHandler, rule: str) -> _FoundStub:
    return node.lineno - 1, (node.end_lineno or node.lineno) - 1, node.col_offset, rule


def _scan_lines(after: bytes) -> Iterator[_FoundStub]:
    for number, encoded in find_suspect_lines(_SUSPECT_WORDS, after, None):
        line = encoded.decode("utf-8", "replace")
        column = find_note(line, _COMMENT_START)
        if column is not None:
            yield number, number, column, "stub-todo"
        for rule, pattern in _LINE_RULES:
            if pattern.match(line):
                yield number, number, 0, rule


def _find_comments(after: bytes) -> Iterator[tuple[int, int, str]]:
    """Line, column and text of each comment of a file that parses.

    Known gap: inside an f-string, Python 3.12 allows the string's own quote; it is taken for the end of the string.
    """
    text = after.removeprefix(codecs.BOM_UTF8)
    spans = [(start, end) for start, end in _comment_and_string_spans(text) if text.startswith(b"#", start)]
    positions = locate_positions(text, (start for start, _ in spans))
    for (line, column), (start, end) in zip(positions, spans, strict=True):
        yield line, column, text[start:end].decode("utf-8", "replace")


def _comment_and_string_spans(text: bytes) -> Iterator[tuple[int, int]]:
    return (match.span() for match in _COMMENT_OR_STRING.finditer(text))
