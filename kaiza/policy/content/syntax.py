"""Language of a file, and its tree-sitter syntax tree for languages other than Python."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from kaiza.domain.finding import ERROR, Finding
from kaiza.policy.content.lines import AddedLines, overlapping_added

MAX_BYTES = 2 * 1024 * 1024
"""Larger files are scanned line by line instead of parsed."""

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
    """Language by the file name's suffix; None if unknown."""
    return LANGUAGES.get(name.rpartition(".")[2].lower()) if "." in name else None


@dataclass(frozen=True)
class SyntaxTree:
    """Syntax tree of a file. Syntax errors are nodes of the tree."""

    # ast-grep's `range()`, `parent()`, `next()` and `prev()` take time in proportion to the line or to the nodes
    # before, which is quadratic on a file of one long line. `replace("")` gives a node's position in constant time.

    text: str
    root: Any

    def find_nodes(self, rule: Mapping[str, Any]) -> list[Any]:
        """Nodes that match an ast-grep rule, in document order."""
        found: list[Any] = self.root.find_all({"rule": rule})
        return found

    def find_kinds(self, kinds: tuple[str, ...]) -> list[Any]:
        """Nodes of any of these kinds, in document order."""
        return self.find_nodes({"any": [{"kind": kind} for kind in kinds]})

    def position_of(self, node: Any) -> tuple[int, int]:
        """Line and column where a node begins."""
        return self._position_at(node.replace("").start_pos)

    def nodes_with_added_lines(self, nodes: Iterable[Any], added: AddedLines) -> Iterator[Any]:
        """Those of the nodes that overlap an added line. The nodes must be in document order."""
        edits = ((node, node.replace("")) for node in nodes)
        spans = (
            (self._position_at(edit.start_pos)[0], self._position_at(edit.end_pos)[0], node) for node, edit in edits
        )
        return overlapping_added(spans, added)

    def is_one_of(self, node: Any, *words: str) -> bool:
        """Whether the node exists and its text is one of these words."""
        if node is None:
            return False
        edit = node.replace("")  # `text()` would copy the node, which may be most of the file
        return any(
            edit.end_pos - edit.start_pos == len(word) and self.text.startswith(word, edit.start_pos) for word in words
        )

    def finding(self, node: Any, rule: str, message: str, fix: str) -> Finding:
        """A finding where a node begins."""
        return Finding(*self.position_of(node), ERROR, rule, message, fix)

    @cached_property
    def _line_starts(self) -> list[int]:
        return list(accumulate((len(line) + 1 for line in self.text.split("\n")), initial=0))

    def _position_at(self, at: int) -> tuple[int, int]:
        line = bisect_right(self._line_starts, at) - 1
        return line, at - self._line_starts[line]


def parse_tree(after: bytes, file_language: str) -> SyntaxTree:
    """Syntax tree of a file's content."""
    from ast_grep_py import SgRoot  # noqa: PLC0415  slow to import; only plans with these rules need it

    text = after.decode("utf-8", "replace")
    return SyntaxTree(text, SgRoot(text, file_language).root())
