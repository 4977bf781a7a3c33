"""What a file is written in, and its syntax tree for languages other than Python."""

from collections.abc import Container
from typing import Any

from kaiza.domain.finding import ERROR, Finding

MAX_BYTES = 2 * 1024 * 1024
"""Larger files are looked at line by line."""

LANGUAGES = {
    "py": "python",
    "pyi": "python",
    "pyw": "python",
    "js": "javascript",
    "mjs": "javascript",
    "cjs": "javascript",
    "jsx": "javascript",
    "ts": "typescript",
    "mts": "typescript",
    "cts": "typescript",
    "tsx": "tsx",
    "go": "go",
    "java": "java",
    "rs": "rust",
    "c": "c",
    "h": "c",
    "cc": "cpp",
    "cpp": "cpp",
    "cxx": "cpp",
    "hpp": "cpp",
    "hh": "cpp",
    "cs": "csharp",
}


def language(name: str) -> str | None:
    """What a file of this name is written in, where that is known."""
    return LANGUAGES.get(name.rpartition(".")[2].lower()) if "." in name else None


def tree(after: bytes, spoken: str) -> Any:
    """The root of the file's syntax tree; faults in the syntax are nodes like others."""
    from ast_grep_py import SgRoot  # noqa: PLC0415  only plans that ask for it pay for it

    return SgRoot(after.decode("utf-8", "replace"), spoken).root()


def touches(node: Any, added: Container[int] | None) -> bool:
    """Whether one of a node's lines was added."""
    place = node.range()
    return added is None or any(line in added for line in range(place.start.line, place.end.line + 1))


def finding(node: Any, rule: str, message: str, fix: str) -> Finding:
    """A finding at a node's beginning."""
    start = node.range().start
    return Finding(start.line, start.column, ERROR, rule, message, fix)
