"""Warnings about a scope's layout: patterns that a person overlooks beside the window, below it, or by a comment."""

from collections.abc import Iterator

from kaiza.domain.plans.field_types import FieldReader
from kaiza.domain.plans.yaml_tree import MappingNode, ScalarNode, SequenceNode, YamlNode

MAX_LINE_COLUMNS = 120
MAX_GAP_LINES = 10
"""So many lines may separate a line of the scope from the words before it."""


def warn_about_layout(shape: FieldReader, text: str, root: MappingNode) -> None:
    """Take in a warning for each line of a scope that is easily overlooked."""
    written, before = text.split("\n"), 0
    for number, found in _scalars_by_line(root).items():
        gap, before = number - before - 1, number
        if any(in_scope for _, in_scope in found):
            _warn_about_line(shape, [word for word, _ in found], written[number].removesuffix("\r"), gap)


def _warn_about_line(shape: FieldReader, words: list[ScalarNode], written: str, gap: int) -> None:
    place = words[0].position
    if len(written) > MAX_LINE_COLUMNS:
        message = f"A line of the scope is longer than {MAX_LINE_COLUMNS} columns"
        shape.warn(place, "long-line", message, "Break it, so that a person sees all of it")
    if gap > MAX_GAP_LINES:
        message = f"{gap} lines without a word come before this line of the scope"
        shape.warn(place, "far-apart", message, "Remove them, so that a person sees the scope at once")
    if any("**" in word.value for word in words) and "#" in written[words[-1].end.column :]:
        message = "A comment is beside a pattern with **"
        shape.warn(place, "comment-beside", message, "Write the comment on a line above, or leave it out")


def _scalars_by_line(root: MappingNode) -> dict[int, list[tuple[ScalarNode, bool]]]:
    """The lines with words on them, in order; with each word whether it belongs to a scope."""
    found: dict[int, list[tuple[ScalarNode, bool]]] = {}
    for word, in_scope in _iter_scalars(root, in_scope=False):
        found.setdefault(word.position.line, []).append((word, in_scope))
    return found


def _iter_scalars(node: YamlNode, *, in_scope: bool) -> Iterator[tuple[ScalarNode, bool]]:
    if isinstance(node, ScalarNode):
        yield node, in_scope
    elif isinstance(node, SequenceNode):
        for item in node.items:
            yield from _iter_scalars(item, in_scope=in_scope)
    else:
        for key, value in node.pairs:
            within = in_scope or (isinstance(key, ScalarNode) and key.value == "scope")
            yield from _iter_scalars(key, in_scope=within)
            yield from _iter_scalars(value, in_scope=within)
