"""What a file is written in, and its syntax tree for languages other than Python."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from kaiza.domain.finding import ERROR, Finding
from kaiza.policy.content.lines import AddedLines, overlapping_added

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


@dataclass(frozen=True)
class SyntaxTree:
    """A file's syntax tree; faults in the syntax are nodes like others.

    A node's own `range()`, `parent()`, `next()` and `prev()` take time with the length of its line or with all that
    is before it, so they are not asked.
    """

    text: str
    root: Any

    def find_nodes(self, rule: Mapping[str, Any]) -> list[Any]:
        """The nodes that a rule of ast-grep finds, in order."""
        found: list[Any] = self.root.find_all({"rule": rule})
        return found

    def find_kinds(self, kinds: tuple[str, ...]) -> list[Any]:
        """The nodes of any of these kinds, in order."""
        return self.find_nodes({"any": [{"kind": kind} for kind in kinds]})

    def position_of(self, node: Any) -> tuple[int, int]:
        """The line and column where a node begins."""
        return self._position_at(node.replace("").start_pos)

    def nodes_with_added_lines(self, nodes: Iterable[Any], added: AddedLines) -> Iterator[Any]:
        """Of these nodes, which come in order, those of which a line was added."""
        return overlapping_added(((*self._line_range(node), node) for node in nodes), added)

    def is_one_of(self, node: Any, *words: str) -> bool:
        """Whether a node is there and is one of these few short words."""
        if node is None:
            return False
        edit = node.replace("")
        return any(
            edit.end_pos - edit.start_pos == len(word) and self.text.startswith(word, edit.start_pos) for word in words
        )

    def finding(self, node: Any, rule: str, message: str, fix: str) -> Finding:
        """A finding at a node's beginning."""
        return Finding(*self.position_of(node), ERROR, rule, message, fix)

    @cached_property
    def _line_starts(self) -> list[int]:
        """Where each line begins, in characters."""
        return list(accumulate((len(line) + 1 for line in self.text.split("\n")), initial=0))

    def _line_range(self, node: Any) -> tuple[int, int]:
        edit = node.replace("")
        return self._position_at(edit.start_pos)[0], self._position_at(edit.end_pos)[0]

    def _position_at(self, at: int) -> tuple[int, int]:
        line = bisect_right(self._line_starts, at) - 1
        return line, at - self._line_starts[line]


def parse_tree(after: bytes, spoken: str) -> SyntaxTree:
    """The file's syntax tree."""
    from ast_grep_py import SgRoot  # noqa: PLC0415  only plans that ask for it pay for it

    text = after.decode("utf-8", "replace")
    return SyntaxTree(text, SgRoot(text, spoken).root())
