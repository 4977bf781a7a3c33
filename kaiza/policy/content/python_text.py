"""What stands in the text of Python beside its syntax tree: its comments and its strings, in linear time.

Python's own tokenizer takes quadratic time on long lines, in one release for these, in another for those.
"""

import codecs
from collections.abc import Iterator

from kaiza.policy.content.lines import compile_patterns, locate_positions

_ESCAPED_CHARACTER = rb"\\(?:\r\n|(?s:.))"
_STRING = rb"QQQ(?:Q{0,2}(?:[^Q\\]|ANY))*(?:QQQ)?|Q(?:[^Q\\\r\n]|ANY)*Q?".replace(b"ANY", _ESCAPED_CHARACTER)
_COMMENT_OR_STRING = compile_patterns(rb"#[^\r\n]*", *(_STRING.replace(b"Q", quote) for quote in (b"'", b'"')))
"""Comments and strings, each whole; what is not closed reaches as far as it may, so that nothing is read twice."""
_MAX_COST = 1_000_000_000


def comments(after: bytes) -> Iterator[tuple[int, int, str]]:
    """The comments of a file that parses: line and column, from 0, and the text.

    A quote of its own kind inside a string's field, as Python 3.12 allows it, is taken for the end of the string.
    """
    text = after.removeprefix(codecs.BOM_UTF8)
    spans = [(at, end) for at, end in _token_spans(text) if text.startswith(b"#", at)]
    for (line, column), (at, end) in zip(locate_positions(text, (at for at, _ in spans)), spans, strict=True):
        yield line, column, text[at:end].decode("utf-8", "replace")


def is_too_costly(after: bytes) -> bool:
    """Whether Python's parser could take long: with fields, as in `f"{a}{b}"`, it reads a string again for each."""
    if after.count(b"{") * len(after) <= _MAX_COST:
        return False
    return sum((end - at) * after.count(b"{", at, end) for at, end in _token_spans(after)) > _MAX_COST


def _token_spans(text: bytes) -> Iterator[tuple[int, int]]:
    return (found.span() for found in _COMMENT_OR_STRING.finditer(text))
