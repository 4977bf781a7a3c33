"""Syntax of the lines of a diff, by Pygments, for files in common languages.

A lexer sees only the lines of one hunk, so that a string that began before it may be coloured wrongly. Only the lexers
in the table are used, and only on short text, since some of Pygments' patterns are slow on hostile content.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from kaiza.domain.review.diff import DiffLine

Span = tuple[int, int, str]
"""Start and end of a token in its line, and its class."""

_MAX_CHARACTERS = 60_000
_MAX_LINE = 500
_LEXERS = {
    **dict.fromkeys(("py", "pyi"), "python"),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), "javascript"),
    **dict.fromkeys(("ts", "tsx"), "typescript"),
    **dict.fromkeys(("c", "h"), "c"),
    **dict.fromkeys(("cc", "cpp", "hpp"), "cpp"),
    **dict.fromkeys(("sh", "bash"), "bash"),
    **dict.fromkeys(("yml", "yaml"), "yaml"),
    **{
        name: name
        for name in ("go", "java", "rb", "php", "swift", "kotlin", "css", "html", "json", "toml", "ini", "sql")
    },
    "rs": "rust",
    "kt": "kotlin",
    "cs": "csharp",
}
_CLASSES = (
    ("Token.Comment", "tc"),
    ("Token.Keyword", "tk"),
    ("Token.Operator.Word", "tk"),
    ("Token.Literal.String", "ts"),
    ("Token.Literal.Number", "tm"),
    ("Token.Name.Function", "tn"),
    ("Token.Name.Class", "tn"),
    ("Token.Name.Tag", "tn"),
    ("Token.Name.Builtin", "tn"),
)


def find_spans(path: str, lines: Sequence[DiffLine]) -> list[list[Span]]:
    """The tokens of each line, the old and the new side each lexed as one text."""
    spans: list[list[Span]] = [[] for _ in lines]
    language = _LEXERS.get(path.rpartition(".")[2].lower())
    lengths = [len(line.text) for line in lines]
    if language is None or sum(lengths) > _MAX_CHARACTERS or max(lengths, default=0) > _MAX_LINE:
        return spans
    for omitted_kind in ("added", "removed"):
        side = [index for index, line in enumerate(lines) if line.kind != omitted_kind]
        found = _split_tokens(_load_lexer(language), [lines[index].text for index in side])
        for index, line_spans in zip(side, found, strict=True):
            spans[index] = line_spans
    return spans


@cache
def _load_lexer(language: str) -> Any:
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415  takes 20 ms, and only a review needs it

    return get_lexer_by_name(language)


def _split_tokens(lexer: Any, texts: list[str]) -> list[list[Span]]:
    """Tokens by line; a token over several lines has a part in each."""
    spans: list[list[Span]] = [[] for _ in texts]
    line = column = 0
    # `get_tokens` would change line ends and tabs; the positions have to stay.
    for _at, kind, value in lexer.get_tokens_unprocessed("\n".join(texts)):
        name = _class_of(str(kind))
        for number, part in enumerate(value.split("\n")):
            if number:
                line, column = line + 1, 0
            if line < len(texts) and name and part:
                spans[line].append((column, column + len(part), name))
            column += len(part)
    return spans


@cache
def _class_of(kind: str) -> str | None:
    return next((name for prefix, name in _CLASSES if kind == prefix or kind.startswith(f"{prefix}.")), None)
