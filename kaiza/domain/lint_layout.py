"""Warnings about a scope's layout: patterns that a person overlooks beside the window, below it, or by a comment."""

from collections.abc import Iterator

from kaiza.domain.shape import Shape
from kaiza.domain.words import Items, Keys, Node, Word

WIDEST = 120
FURTHEST = 10
"""So many lines may separate a line of the scope from the words before it."""


def warn_of_layout(shape: Shape, text: str, root: Keys) -> None:
    """Take in a warning for each line of a scope that is easily overlooked."""
    written, before = text.split("\n"), 0
    for number, found in _lines(root).items():
        gap, before = number - before - 1, number
        if any(in_scope for _, in_scope in found):
            _warn_of_line(shape, [word for word, _ in found], written[number].removesuffix("\r"), gap)


def _warn_of_line(shape: Shape, words: list[Word], written: str, gap: int) -> None:
    place = words[0].place
    if len(written) > WIDEST:
        message = f"A line of the scope is longer than {WIDEST} columns"
        shape.warn(place, "long-line", message, "Break it, so that a person sees all of it")
    if gap > FURTHEST:
        message = f"{gap} lines without a word come before this line of the scope"
        shape.warn(place, "far-apart", message, "Remove them, so that a person sees the scope at once")
    if any("**" in word.value for word in words) and "#" in written[words[-1].end.column :]:
        message = "A comment is beside a pattern with **"
        shape.warn(place, "comment-beside", message, "Write the comment on a line above, or leave it out")


def _lines(root: Keys) -> dict[int, list[tuple[Word, bool]]]:
    """The lines with words on them, in order; with each word whether it belongs to a scope."""
    found: dict[int, list[tuple[Word, bool]]] = {}
    for word, in_scope in _words(root, in_scope=False):
        found.setdefault(word.place.line, []).append((word, in_scope))
    return found


def _words(node: Node, *, in_scope: bool) -> Iterator[tuple[Word, bool]]:
    if isinstance(node, Word):
        yield node, in_scope
    elif isinstance(node, Items):
        for item in node.items:
            yield from _words(item, in_scope=in_scope)
    else:
        for key, value in node.pairs:
            within = in_scope or (isinstance(key, Word) and key.value == "scope")
            yield from _words(key, in_scope=within)
            yield from _words(value, in_scope=within)
